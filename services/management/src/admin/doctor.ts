import { type CommandWithoutDatabase, UsageError, valueOption } from './command.ts';

/** Runs the checks of `runhook doctor` inside the container of a service, with its environment. */
export const doctorCommand: CommandWithoutDatabase<{ url?: string; endpoint?: string }> = {
  name: 'doctor',
  summary: 'what is wrong with this installation, and what to do',
  description:
    'Looks at database, schema, day partitions, keys, queue, eviction, clocks, egress, the service and a token, as far as the environment and the options name them. Says of each what is wrong and what to do. Changes nothing and sends nothing to an endpoint. Ends with 1 when something failed.',
  options: [
    valueOption('--url <url>', 'where clients reach the service; else RUNHOOK_URL', httpUrl),
    valueOption(
      '--endpoint <url>',
      'a URL that deliveries go to: may they, and is it reached from here',
      httpUrl,
    ),
  ],
  examples: ['doctor', 'doctor --endpoint https://pager.example.com/hook'],
  async runWithoutDatabase({ url, endpoint }, env) {
    const { runChecks, findingsText } = await import('@runhook/doctor');
    const serviceUrl = url ?? (env.RUNHOOK_URL || undefined);
    const findings = [];
    for await (const finding of runChecks({
      env,
      serviceUrl,
      token: env.RUNHOOK_TOKEN || undefined,
      endpoint,
    }))
      findings.push(finding);
    const hasPassed = findings.every(({ status }) => status !== 'failed');
    return { json: findings, text: findingsText(findings), exitCode: hasPassed ? 0 : 1 };
  },
};

function httpUrl(option: string) {
  return (text: string): never => {
    if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text as never;
    throw new UsageError(`${option} must be an http or https URL.`);
  };
}
