import type { Client, Schemas } from '@runhook/client';
import { EVENT_TYPES } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import { InvalidArgumentError } from 'commander';
import {
  type Command,
  type CommandGroup,
  choice,
  option,
  parsers,
  repeatable,
  timeText,
  UsageError,
} from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import { recover } from './recover.ts';

const WEBHOOKS_PATH = '/api/v3/accounts/{account_id}/webhooks';
const WEBHOOK_PATH = `${WEBHOOKS_PATH}/subscription/{webhook_id}` as const;

type Webhook = Schemas['Subscription'];

const WEBHOOK_ARGUMENT: [string, string] = ['<webhook>', 'id or name of the webhook'];

/** Returns the first `count` rows of a list. */
export async function takeRows<T>(rows: AsyncIterable<T>, count: number): Promise<T[]> {
  const taken: T[] = [];
  for await (const row of rows) {
    if (taken.length >= count) break;
    taken.push(row);
  }
  return taken;
}

export function limitOption() {
  return option('--limit <count>', 'maximum number of rows', parsers.integer(1, 100_000)).default(50);
}

/** "active", "failing since 2026-01-31T12:00:00Z", "inactive". */
function stateOf({ active, health }: Webhook): string {
  if (!active) return 'inactive';
  return health?.failing_since === undefined ? 'active' : `failing since ${timeText(health.failing_since)}`;
}

const list: Command<ConnectionOptions & { search?: string; failing?: true; limit: number }> = {
  name: 'list',
  summary: 'list the webhooks of the account',
  description: 'Lists the webhooks of the account, newest first.',
  options: [
    option('--search <text>', 'text in name, URL or description, or a complete id'),
    option('--failing', 'only webhooks whose latest attempt failed'),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['webhooks list --failing'],
  async run(context, { search = '', failing, limit, ...connection }) {
    const client = await connect(context.env, connection);
    const query = {
      search,
      ...(failing && { failing: true }),
      include: 'health',
      limit: Math.min(limit, 100),
    } as const;
    const rows = await takeRows(client.list(`${WEBHOOKS_PATH}/subscriptions`, { query }), limit);
    const cells = rows.map((row) => [row.id, row.name, stateOf(row), row.http_status_code, urlText(row)]);
    await context.writeResult(table(['ID', 'NAME', 'STATE', 'LAST', 'URL'], cells), rows);
    return 0;
  },
};

const urlText = ({ client_url: url }: Pick<Webhook, 'client_url'>) => url || 'none: it has only a feed';

function webhookText(webhook: Webhook): string {
  const facts: [string, string | undefined][] = [
    ['id', webhook.id],
    ['name', webhook.name],
    ['description', webhook.description],
    ['url', urlText(webhook)],
    ['state', stateOf(webhook)],
    ['deactivated', webhook.deactivate_reason],
    ['events', webhook.event_types.join(', ')],
    ['jobs', webhook.job_ids.join(', ') || 'all'],
    ['signature header', webhook.signature_header],
    ['custom headers', Object.keys(webhook.headers ?? {}).join(', ')],
    [
      'last attempt',
      webhook.dispatched_at && `${timeText(webhook.dispatched_at)}, ${webhook.http_status_code}`,
    ],
    ['secret', 'hmac_secret' in webhook ? `${webhook.hmac_secret} (not shown again)` : undefined],
    ['old secret valid until', timeText(webhook.secret_rotation?.ends_at)],
    ['public keys', webhook.signature_key?.public_keys.join(', ')],
    ['old key pair valid until', timeText(webhook.signature_key?.rotation?.ends_at)],
  ];
  const rows = facts.flatMap(([name, value]) => (value ? [[`${name}:`, value]] : []));
  return table(['', ''], rows).trimStart();
}

const get: Command<ConnectionOptions> = {
  name: 'get',
  summary: 'show a webhook',
  description: 'Shows all fields of a webhook except its secret.',
  arguments: [WEBHOOK_ARGUMENT],
  options: connectionOptions(),
  examples: ['webhooks get "Production pager"'],
  async run(context, options, [reference = '']) {
    const client = await connect(context.env, options);
    const { id } = await resolveWebhook(client, reference);
    const webhook = await client.get(WEBHOOK_PATH, {
      path: { webhook_id: id },
      query: { include: 'health,error_code' },
    });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

interface CreateOptions extends ConnectionOptions {
  name: string;
  endpoint?: string;
  feedOnly?: true;
  event?: Schemas['SubscriptionFields']['event_types'];
  job?: number[];
  description?: string;
  signatureHeader?: string;
  signatureKey?: 'ed25519';
  inactive?: true;
}

function eventType(text: string): string {
  if (!EVENT_TYPES.some((type) => type === text))
    throw new InvalidArgumentError(`It must be one of ${EVENT_TYPES.join(', ')}.`);
  return text;
}

const create: Command<CreateOptions> = {
  name: 'create',
  summary: 'create a webhook',
  description: 'Creates a webhook and shows its secret, which cannot be shown again.',
  options: [
    option('--name <name>', 'name of the webhook').makeOptionMandatory(),
    option('--endpoint <url>', 'URL to which deliveries are sent'),
    option('--feed-only', 'create a webhook without an endpoint, whose events are read from its feed'),
    repeatable(
      '--event <type>',
      `event type that is sent; may be repeated; default: all of ${EVENT_TYPES.join(', ')}`,
      eventType,
    ),
    repeatable(
      '--job <id>',
      'id of a job whose events are sent; may be repeated; default: all jobs',
      parsers.id,
    ),
    option('--description <text>', 'description of the webhook'),
    option('--signature-header <name>', 'name of the signature header, if a proxy strips Authorization'),
    choice('--signature-key <type>', 'type of a key pair that signs in addition to the secret', ['ed25519']),
    option('--inactive', 'create the webhook inactive: it gets no deliveries until it is activated'),
    ...connectionOptions(),
  ],
  examples: [
    'webhooks create --name Pager --endpoint https://pager.example.com/hook --event job.run.errored',
  ],
  async run(context, options) {
    const { name, endpoint, event, job = [], description = '', inactive } = options;
    const { signatureHeader, signatureKey, feedOnly } = options;
    if ((endpoint === undefined) !== (feedOnly === true))
      throw new UsageError('Either --endpoint or --feed-only is required.');
    const client = await connect(context.env, options);
    const webhook = await client.post(`${WEBHOOKS_PATH}/subscriptions`, {
      body: {
        name,
        client_url: endpoint ?? '',
        event_types: event ?? [...EVENT_TYPES],
        job_ids: job,
        description,
        active: inactive !== true,
        ...(signatureHeader !== undefined && { signature_header: signatureHeader }),
        ...(signatureKey !== undefined && { signature_key: signatureKey }),
      },
    });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

const test: Command<ConnectionOptions & { type?: (typeof EVENT_TYPES)[number] }> = {
  name: 'test',
  summary: 'send a signed sample from the service to the endpoint',
  description:
    'The service sends a sample to the endpoint of the webhook. Shows the response, and exits with 1 unless it was a 2xx.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [choice('--type <type>', 'event type of the sample', EVENT_TYPES), ...connectionOptions()],
  examples: ['webhooks test "Production pager" --type job.run.errored'],
  async run(context, { type, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id, client_url: url } = await resolveWebhook(client, reference);
    const verification = await client.get(`${WEBHOOK_PATH}/test`, {
      path: { webhook_id: id },
      query: { ...(type !== undefined && { event_type: type }), include: 'exchange,error_code' },
    });
    const { verification_error: problem, verification_status_code: status, exchange } = verification;
    const durationText = exchange === undefined ? '' : ` in ${exchange.duration_ms} ms`;
    await context.writeResult(
      `${url}  ${problem ?? `responded with ${status}${durationText}.`}`,
      verification,
    );
    return problem === null ? 0 : 1;
  },
};

interface RotateOptions extends ConnectionOptions {
  overlapHours?: number;
}

/** @param old `secret` or `key pair` */
function overlapOption(old: string) {
  return option(
    '--overlap-hours <hours>',
    `time for which the old ${old} is in use as well (default: 24); 0 if it has leaked`,
    parsers.integer(0, 168),
  );
}

const rotate: Command<RotateOptions> = {
  name: 'rotate-secret',
  summary: 'replace the secret, with an overlap',
  description:
    'Creates a new secret and shows it; it cannot be shown again. Both secrets are in use until the overlap ends: configure the new one at the endpoint before that.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [overlapOption('secret'), ...connectionOptions()],
  examples: ['webhooks rotate-secret "Production pager" --overlap-hours 48'],
  async run(context, { overlapHours, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, reference);
    const body = { overlap_hours: overlapHours ?? null };
    const webhook = await client.post(`${WEBHOOK_PATH}/rotate-secret`, { path: { webhook_id: id }, body });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

const rotateKey: Command<RotateOptions> = {
  name: 'rotate-signature-key',
  summary: 'replace the key pair, with an overlap',
  description:
    'Creates a new key pair and shows the public keys. Both sign until the overlap ends: configure the new public key at the endpoint before that.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [overlapOption('key pair'), ...connectionOptions()],
  examples: ['webhooks rotate-signature-key "Production pager" --overlap-hours 48'],
  async run(context, { overlapHours, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, reference);
    const parts = { path: { webhook_id: id }, body: { overlap_hours: overlapHours ?? null } };
    const webhook = await client.post(`${WEBHOOK_PATH}/rotate-signature-key`, parts);
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

const remove: Command<ConnectionOptions & { yes?: true }> = {
  name: 'delete',
  summary: 'delete a webhook and its log',
  description: 'Deletes a webhook and its log, and cancels its pending deliveries.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [option('--yes', 'confirms the deletion; without it nothing is done'), ...connectionOptions()],
  examples: ['webhooks delete "Production pager" --yes'],
  async run(context, { yes, ...connection }, [reference = '']) {
    if (yes !== true) throw new UsageError('A deletion cannot be undone: confirm it with --yes.');
    const client: Client = await connect(context.env, connection);
    const { id, name } = await resolveWebhook(client, reference);
    const deleted = await client.delete(WEBHOOK_PATH, { path: { webhook_id: id } });
    await context.writeResult(`Deleted ${name} (${id}).`, deleted);
    return 0;
  },
};

export const webhooksGroup: CommandGroup = {
  name: 'webhooks',
  summary: 'list, get, create, test, recover, rotate-secret, rotate-signature-key, delete',
  commands: [list, get, create, test, recover, rotate, rotateKey, remove] as Command[],
};
