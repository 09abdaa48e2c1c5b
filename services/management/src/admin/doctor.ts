import { type CommandWithoutDatabase, UsageError, valueOption } from './command.ts';

/** Runs the checks of `runhook doctor` inside the container of a service, with its environment. */
export const doctorCommand: CommandWithoutDatabase<{ url?: string; endpoint?: string }> = {
  name: 'doctor',
  summary: 'check an installation and explain how to fix it',
  description:
    'Checks the database, schema, day partitions, keys, queue, eviction, clocks, egress, the identity provider, the service and a token, as far as the environment and the options name them. Explains each problem and how to fix it. Changes nothing and sends nothing to an endpoint. Exits with 1 if a check failed.',
  options: [
    valueOption('--url <url>', 'URL of the service for clients; default: RUNHOOK_URL', httpUrl),
    valueOption(
      '--endpoint <url>',
      'URL of an endpoint: check that deliveries may be sent to it and that this machine can reach it',
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
