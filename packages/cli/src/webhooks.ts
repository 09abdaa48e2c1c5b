import type { Client, Schemas } from '@runhook/client';
import { EVENT_TYPES } from '@runhook/contract';
import { table } from '@runhook/runtime/terminal-text';
import {
  type Command,
  type CommandGroup,
  choice,
  option,
  parsers,
  repeatable,
  UsageError,
} from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import { formatOptions, parseLabel } from './webhook-options.ts';
import { previewWebhook } from './webhook-preview.ts';
import {
  type EventType,
  eventType,
  stateOf,
  WEBHOOK_ARGUMENT,
  WEBHOOK_PATH,
  WEBHOOKS_PATH,
  webhookText,
} from './webhook-text.ts';
import { create, duplicate, update } from './webhook-writes.ts';

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

interface ListOptions extends ConnectionOptions {
  search?: string;
  failing?: true;
  event?: EventType[];
  label?: [key: string, value: string][];
  limit: number;
}

const list: Command<ListOptions> = {
  name: 'list',
  summary: 'list the webhooks of the account',
  description: 'Lists the webhooks of the account, newest first.',
  options: [
    option('--search <text>', 'text in name, URL or description, or a complete id'),
    option('--failing', 'only webhooks whose latest attempt failed'),
    repeatable('--event <type>', 'only webhooks with any of these event types', eventType),
    repeatable('--label <key[=value]>', 'only webhooks with this label; may be repeated', parseLabel),
    limitOption(),
    ...connectionOptions(),
  ],
  examples: ['webhooks list --failing'],
  async run(context, { search = '', failing, event = [], label = [], limit, ...connection }) {
    const client = await connect(context.env, connection);
    const query = {
      search,
      ...(failing && { failing: true }),
      event_types: event.join(),
      label: label.map(([key, value]) => (value === '' ? key : `${key}:${value}`)),
      include: 'health',
      limit: Math.min(limit, 100),
    } as const;
    const rows = await takeRows(client.list(`${WEBHOOKS_PATH}/subscriptions`, { query }), limit);
    const cells = rows.map((row) => [row.id, row.name, stateOf(row), row.http_status_code, row.client_url]);
    await context.writeResult(table(['ID', 'NAME', 'STATE', 'LAST', 'URL'], cells), rows);
    return 0;
  },
};

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

interface TestOptions extends ConnectionOptions {
  type?: (typeof EVENT_TYPES)[number];
  event?: string;
  format?: NonNullable<Schemas['StoredTest']['format']>;
  formatOption?: [name: string, value: string][];
}

const test: Command<TestOptions> = {
  name: 'test',
  summary: 'send a signed sample or a past event from the service to the endpoint',
  description:
    'The service sends a sample or a past event to the endpoint of the webhook, in its format or another one. Shows the response, and exits with 1 unless the endpoint accepted it.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [
    choice('--type <type>', 'event type of the sample', EVENT_TYPES),
    option('--event <id>', 'id of the event to send instead of a sample'),
    ...formatOptions(),
    ...connectionOptions(),
  ],
  examples: [
    'webhooks test "Production pager" --type job.run.errored',
    'webhooks test "Chat" --event wev_… --format slack',
  ],
  async run(context, { type, event, format, formatOption: options, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id, client_url: url } = await resolveWebhook(client, reference);
    const path = { webhook_id: id };
    const eventType = type !== undefined && { event_type: type };
    const isSample = event === undefined && format === undefined && options === undefined;
    const verification = isSample
      ? await client.get(`${WEBHOOK_PATH}/test`, {
          path,
          query: { ...eventType, include: 'exchange,error_code' },
        })
      : await client.post(`${WEBHOOK_PATH}/test`, {
          path,
          body: {
            ...eventType,
            ...(event !== undefined && { event_id: event }),
            ...(format !== undefined && { format }),
            ...(options !== undefined && { format_options: Object.fromEntries(options) }),
          },
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
  summary: 'list, get, create, update, duplicate, preview, test, rotate-secret, rotate-signature-key, delete',
  commands: [
    list,
    get,
    create,
    update,
    duplicate,
    previewWebhook,
    test,
    rotate,
    rotateKey,
    remove,
  ] as Command[],
};
