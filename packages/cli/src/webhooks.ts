import type { Client, Schemas } from '@runhook/client';
import { EVENT_TYPES } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import { InvalidArgumentError } from 'commander';
import {
  type Command,
  type CommandGroup,
  choice,
  option,
  reads,
  repeatable,
  timeText,
  UsageError,
} from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, webhookNamed } from './connection.ts';

const BASE = '/api/v3/accounts/{account_id}/webhooks';
const ONE = `${BASE}/subscription/{webhook_id}` as const;

type Webhook = Schemas['Subscription'];

const WEBHOOK: [string, string] = ['<webhook>', 'its id or its name'];

/** Returns the first `count` rows of a list. */
export async function firstOf<T>(rows: AsyncIterable<T>, count: number): Promise<T[]> {
  const found: T[] = [];
  for await (const row of rows) {
    if (found.length >= count) break;
    found.push(row);
  }
  return found;
}

export function limitOption() {
  return option('--limit <count>', 'how many at most', reads.wholeNumber(1, 100_000)).default(50);
}

/** "healthy", "failing since 2026-01-31T12:00:00Z", "inactive". */
function stateOf({ active, health }: Webhook): string {
  if (!active) return 'inactive';
  return health?.failing_since === undefined ? 'active' : `failing since ${timeText(health.failing_since)}`;
}

const list: Command<ConnectionOptions & { search?: string; failing?: true; limit: number }> = {
  name: 'list',
  summary: 'the webhooks of the account',
  description: 'The webhooks of the account, newest first.',
  options: [
    option('--search <text>', 'in name, URL and description, or the whole id'),
    option('--failing', 'only those whose latest attempt failed'),
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
    const rows = await firstOf(client.list(`${BASE}/subscriptions`, { query }), limit);
    const cells = rows.map((row) => [row.id, row.name, stateOf(row), row.http_status_code, row.client_url]);
    await context.answer(table(['ID', 'NAME', 'STATE', 'LAST', 'URL'], cells), rows);
    return 0;
  },
};

function factsOf(webhook: Webhook): string {
  const facts: [string, string | undefined][] = [
    ['id', webhook.id],
    ['name', webhook.name],
    ['description', webhook.description],
    ['url', webhook.client_url],
    ['state', stateOf(webhook)],
    ['switched off', webhook.deactivate_reason],
    ['events', webhook.event_types.join(', ')],
    ['jobs', webhook.job_ids.join(', ') || 'all'],
    ['signature in', webhook.signature_header],
    ['headers', Object.keys(webhook.headers ?? {}).join(', ')],
    [
      'last attempt',
      webhook.dispatched_at && `${timeText(webhook.dispatched_at)}, ${webhook.http_status_code}`,
    ],
    ['secret', 'hmac_secret' in webhook ? `${webhook.hmac_secret} (not shown again)` : undefined],
    ['old secret until', timeText(webhook.secret_rotation?.ends_at)],
  ];
  const rows = facts.flatMap(([name, value]) => (value ? [[`${name}:`, value]] : []));
  return table(['', ''], rows).trimStart();
}

const get: Command<ConnectionOptions> = {
  name: 'get',
  summary: 'one webhook',
  description: 'All that is known of a webhook, but its secret.',
  arguments: [WEBHOOK],
  options: connectionOptions(),
  examples: ['webhooks get "Production pager"'],
  async run(context, options, [word = '']) {
    const client = await connect(context.env, options);
    const { id } = await webhookNamed(client, word);
    const webhook = await client.get(ONE, {
      path: { webhook_id: id },
      query: { include: 'health,error_code' },
    });
    await context.answer(factsOf(webhook), webhook);
    return 0;
  },
};

interface CreateOptions extends ConnectionOptions {
  name: string;
  endpoint: string;
  event?: Schemas['SubscriptionFields']['event_types'];
  job?: number[];
  description?: string;
  signatureHeader?: string;
  inactive?: true;
}

function eventType(text: string): string {
  if (!EVENT_TYPES.some((type) => type === text))
    throw new InvalidArgumentError(`It must be one of ${EVENT_TYPES.join(', ')}.`);
  return text;
}

const create: Command<CreateOptions> = {
  name: 'create',
  summary: 'a new webhook',
  description: 'Makes a webhook and shows its secret, which is shown this once.',
  options: [
    option('--name <name>', 'what it is called').makeOptionMandatory(),
    option('--endpoint <url>', 'where deliveries are sent').makeOptionMandatory(),
    repeatable(
      '--event <type>',
      `what it fires for; may be repeated, all when left out: ${EVENT_TYPES.join(', ')}`,
      eventType,
    ),
    repeatable('--job <id>', 'the job that it fires for; may be repeated, all when left out', reads.id),
    option('--description <text>', 'what it is for'),
    option('--signature-header <name>', 'the header of the signature, where Authorization does not pass'),
    option('--inactive', 'it does not fire until it is switched on'),
    ...connectionOptions(),
  ],
  examples: [
    'webhooks create --name Pager --endpoint https://pager.example.com/hook --event job.run.errored',
  ],
  async run(context, options) {
    const { name, endpoint, event, job = [], description = '', signatureHeader, inactive } = options;
    const client = await connect(context.env, options);
    const webhook = await client.post(`${BASE}/subscriptions`, {
      body: {
        name,
        client_url: endpoint,
        event_types: event ?? [...EVENT_TYPES],
        job_ids: job,
        description,
        active: inactive !== true,
        ...(signatureHeader !== undefined && { signature_header: signatureHeader }),
      },
    });
    await context.answer(factsOf(webhook), webhook);
    return 0;
  },
};

const test: Command<ConnectionOptions & { type?: (typeof EVENT_TYPES)[number] }> = {
  name: 'test',
  summary: 'send a signed sample to its endpoint, from the service',
  description:
    'The service sends a sample to the endpoint of the webhook and tells what it answered. Ends with 1 unless that was a 2xx.',
  arguments: [WEBHOOK],
  options: [choice('--type <type>', 'of this type of event', EVENT_TYPES), ...connectionOptions()],
  examples: ['webhooks test "Production pager" --type job.run.errored'],
  async run(context, { type, ...connection }, [word = '']) {
    const client = await connect(context.env, connection);
    const { id, client_url: url } = await webhookNamed(client, word);
    const tested = await client.get(`${ONE}/test`, {
      path: { webhook_id: id },
      query: { ...(type !== undefined && { event_type: type }), include: 'exchange,error_code' },
    });
    const { verification_error: problem, verification_status_code: status, exchange } = tested;
    const took = exchange === undefined ? '' : ` in ${exchange.duration_ms} ms`;
    await context.answer(`${url}  ${problem ?? `answered ${status}${took}.`}`, tested);
    return problem === null ? 0 : 1;
  },
};

const rotate: Command<ConnectionOptions & { overlapHours?: number }> = {
  name: 'rotate-secret',
  summary: 'a new secret, with the old one in use for a while',
  description:
    'Makes a new secret and shows it, this once. Until the overlap ends both sign: give the new one to the endpoint meanwhile.',
  arguments: [WEBHOOK],
  options: [
    option(
      '--overlap-hours <hours>',
      'how long both are in use (default: 24); 0 for one that has leaked',
      reads.wholeNumber(0, 168),
    ),
    ...connectionOptions(),
  ],
  examples: ['webhooks rotate-secret "Production pager" --overlap-hours 48'],
  async run(context, { overlapHours, ...connection }, [word = '']) {
    const client = await connect(context.env, connection);
    const { id } = await webhookNamed(client, word);
    const body = { overlap_hours: overlapHours ?? null };
    const webhook = await client.post(`${ONE}/rotate-secret`, { path: { webhook_id: id }, body });
    await context.answer(factsOf(webhook), webhook);
    return 0;
  },
};

const remove: Command<ConnectionOptions & { yes?: true }> = {
  name: 'delete',
  summary: 'delete a webhook, with its log',
  description: 'Deletes a webhook: what waits for it is cancelled, and its own log is gone.',
  arguments: [WEBHOOK],
  options: [option('--yes', 'it is meant; without it nothing is done'), ...connectionOptions()],
  examples: ['webhooks delete "Production pager" --yes'],
  async run(context, { yes, ...connection }, [word = '']) {
    if (yes !== true) throw new UsageError('Deleting cannot be undone: add --yes if it is meant.');
    const client: Client = await connect(context.env, connection);
    const { id, name } = await webhookNamed(client, word);
    const deleted = await client.delete(ONE, { path: { webhook_id: id } });
    await context.answer(`${name} (${id}) is deleted.`, deleted);
    return 0;
  },
};

export const webhooksGroup: CommandGroup = {
  name: 'webhooks',
  summary: 'list, get, create, test, rotate-secret, delete',
  commands: [list, get, create, test, rotate, remove] as Command[],
};
