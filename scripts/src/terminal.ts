import { webhooksUrl } from './api.ts';
import type { DevJson } from './home.ts';

/** Created by `scripts/start/terminal.mjs`. */
export interface Terminal {
  style: Record<'bold' | 'dim' | 'red' | 'green' | 'yellow', (text: string) => string>;
  line(text?: string): void;
  /** Prints something unusual that is not an error. */
  note(text: string): void;
  error(text: string): void;
  /** Does the work and prints `describe(result)`, or `name`, with the duration. */
  step<T>(name: string, work: () => T | Promise<T>, describe?: (result: T) => string): Promise<T>;
}

const LABEL_WIDTH = 12;

/** Returns lines that list the running services and their credentials. */
export function summary(dev: DevJson, style: Terminal['style']): string[] {
  const { account, user, subscription } = dev;
  const row = (label: string, value: string, remark = '') =>
    `  ${label.padEnd(LABEL_WIDTH)} ${value}${remark === '' ? '' : `  ${style.dim(remark)}`}`;
  return [
    row('console', `${dev.baseUrl}/`, 'sign in as this user, with this password:'),
    row('  user', user.email),
    row('  password', user.password),
    row('API', dev.baseUrl, 'described at /docs'),
    row('receiver', dev.receiverUrl),
    row('dispatcher', dev.dispatcherUrl, '/healthz, /readyz, /metrics'),
    row('operations', dev.operationsUrl, '/healthz, /readyz, /metrics of management'),
    '',
    row('account', String(account.id), account.identifier),
    row('API key', user.apiKey, `of ${user.email}`),
    row('demo-admin', dev.serviceToken, 'service token, account_admin'),
    row('demo-runner', dev.runnerToken, 'service token, job_runner'),
    row('subscription', subscription.id),
    row('hmac_secret', subscription.hmacSecret),
    '',
    style.bold('Example commands'),
    ...commands(dev).flatMap(({ what, command }) => ['', `  ${style.dim(`# ${what}`)}`, `  ${command}`]),
  ];
}

/** Returns three commands that work without changes. */
export function commands(dev: DevJson): { what: string; command: string }[] {
  const { account, serviceToken, subscription } = dev;
  const url = webhooksUrl(dev.baseUrl, account.id);
  const curl = `curl -sS -H 'Authorization: Token ${serviceToken}'`;
  const body = JSON.stringify({
    name: 'My webhook',
    event_types: ['job.run.completed', 'job.run.errored'],
    client_url: 'https://example.com/webhooks',
    active: false,
  });
  return [
    { what: 'list the subscriptions', command: `${curl} ${url}/subscriptions` },
    {
      what: 'create one (inactive, so that nothing is sent to example.com)',
      command: `${curl} -H 'Content-Type: application/json' -d '${body}' ${url}/subscriptions`,
    },
    {
      what: 'the latest deliveries of the demo subscription',
      command: `${curl} '${url}/subscription/${subscription.id}/deliveries?limit=5'`,
    },
  ];
}
