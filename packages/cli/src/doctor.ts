import { type Command, option, parsers } from './command.ts';
import { type ConnectionOptions, connectionOptions, findToken, serviceUrl } from './connection.ts';

export const doctorCommand: Command<ConnectionOptions & { endpoint?: string }> = {
  name: 'doctor',
  summary: 'check an installation and explain how to fix it',
  description:
    'For operators: run it with the environment of the services. Checks the database, the queue, the keys and the egress rules by DATABASE_URL, QUEUE_URL, ENCRYPTION_KEYS and EGRESS_…, and the service and the token. Explains each problem and how to fix it. Skips checks whose setting is missing. Changes nothing and sends nothing to an endpoint. Exits with 1 if a check failed.',
  options: [
    option(
      '--endpoint <url>',
      'URL of an endpoint: check that deliveries may be sent to it and that this machine can reach it',
      parsers.httpUrl,
    ),
    ...connectionOptions(),
  ],
  examples: ['doctor --endpoint https://pager.example.com/hook', 'doctor --json'],
  async run(context, { endpoint, ...connection }) {
    const { env } = context;
    // Imported here, so that other commands do not load the database and queue drivers.
    const { runChecks, findingsText } = await import('@runhook/doctor');
    const hasServiceUrl = connection.url !== undefined || Boolean(env.RUNHOOK_URL);
    const findings = [];
    const doctorOptions = {
      env,
      endpoint,
      serviceUrl: hasServiceUrl ? serviceUrl(env, connection) : undefined,
      token: findToken(env, connection) ?? undefined,
    };
    for await (const finding of runChecks(doctorOptions)) findings.push(finding);
    await context.writeResult(findingsText(findings), findings);
    return findings.some(({ status }) => status === 'failed') ? 1 : 0;
  },
};
