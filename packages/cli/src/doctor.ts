import { type Command, option, reads } from './command.ts';
import { type ConnectionOptions, connectionOptions, findToken, serviceUrl } from './connection.ts';

export const doctorCommand: Command<ConnectionOptions & { endpoint?: string }> = {
  name: 'doctor',
  summary: 'what is wrong with an installation, and what to do',
  description:
    'For operators, where the services run: looks at what DATABASE_URL, QUEUE_URL, ENCRYPTION_KEYS and EGRESS_… of its environment name, at the service and at the token. Says of each what is wrong and what to do. What is not named is skipped. Changes nothing and sends nothing to an endpoint. Ends with 1 when something failed.',
  options: [
    option(
      '--endpoint <url>',
      'a URL that deliveries go to: may they, and is it reached from here',
      reads.httpUrl,
    ),
    ...connectionOptions(),
  ],
  examples: ['doctor --endpoint https://pager.example.com/hook', 'doctor --json'],
  async run(context, { endpoint, ...connection }) {
    const { env } = context;
    // Imported here, so that other commands do not load the database and queue drivers.
    const { examine, findingsText } = await import('@runhook/doctor');
    const isNamed = connection.url !== undefined || Boolean(env.RUNHOOK_URL);
    const findings = [];
    const asked = {
      env,
      endpoint,
      serviceUrl: isNamed ? serviceUrl(env, connection) : undefined,
      token: findToken(env, connection) ?? undefined,
    };
    for await (const finding of examine(asked)) findings.push(finding);
    await context.answer(findingsText(findings), findings);
    return findings.some(({ verdict }) => verdict === 'failed') ? 1 : 0;
  },
};
