import { EVENT_TYPES } from '@runhook/contract';
import { InvalidArgumentError } from 'commander';
import { type Command, choice, option, parsers, repeatable, UsageError } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import {
  type DeliveryOptions,
  deliveryFields,
  deliveryOptions,
  withStoredMembers,
} from './webhook-options.ts';
import {
  type EventType,
  eventType,
  WEBHOOK_ARGUMENT,
  WEBHOOK_PATH,
  WEBHOOKS_PATH,
  webhookText,
} from './webhook-text.ts';

interface FieldOptions extends ConnectionOptions, DeliveryOptions {
  event?: EventType[];
  job?: number[];
  description?: string;
  signatureHeader?: string;
  signatureKey?: 'ed25519';
  inactive?: true;
}

interface CreateOptions extends FieldOptions {
  name: string;
  endpoint?: string;
  feedOnly?: true;
}

/** Options of `create` and `update` in addition to the required ones of `create`. */
function fieldOptions() {
  return [
    option('--description <text>', 'description of the webhook'),
    option('--signature-header <name>', 'name of the signature header, if a proxy strips Authorization'),
    choice('--signature-key <type>', 'type of a key pair that signs in addition to the secret', ['ed25519']),
    ...deliveryOptions(),
  ];
}

function optionalFields(options: FieldOptions) {
  const { signatureHeader, signatureKey } = options;
  return {
    ...(signatureHeader !== undefined && { signature_header: signatureHeader }),
    ...(signatureKey !== undefined && { signature_key: signatureKey }),
    ...deliveryFields(options),
  };
}

export const create: Command<CreateOptions> = {
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
    ...fieldOptions(),
    option('--inactive', 'create the webhook inactive: it gets no deliveries until it is activated'),
    ...connectionOptions(),
  ],
  examples: [
    'webhooks create --name Pager --endpoint https://pager.example.com/hook --event job.run.errored',
  ],
  async run(context, options) {
    const { name, endpoint, feedOnly, event, job = [], description = '', inactive } = options;
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
        ...optionalFields(options),
      },
    });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

/** Fields that `--clear` removes. */
const CLEARABLE = [
  'signature_header',
  'headers',
  'signature_key',
  'format',
  'format_options',
  'filters',
  'ordered',
  'rate_limit',
  'labels',
  'deactivate_on_410',
] as const;

interface UpdateOptions extends FieldOptions {
  name?: string;
  endpoint?: string;
  active?: true;
  clear?: (typeof CLEARABLE)[number][];
}

function clearableField(text: string): string {
  if (!CLEARABLE.some((field) => field === text))
    throw new InvalidArgumentError(`It must be one of ${CLEARABLE.join(', ')}.`);
  return text;
}

export const update: Command<UpdateOptions> = {
  name: 'update',
  summary: 'change a webhook',
  description:
    'Changes the fields that are given, and keeps the others, also the filters and labels that are not named.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [
    option('--name <name>', 'name of the webhook'),
    option('--endpoint <url>', 'URL to which deliveries are sent'),
    repeatable('--event <type>', 'event type that is sent; may be repeated', eventType),
    repeatable('--job <id>', 'id of a job whose events are sent; may be repeated', parsers.id),
    ...fieldOptions(),
    option('--active', 'activate the webhook'),
    option('--inactive', 'deactivate the webhook'),
    repeatable(
      '--clear <field>',
      `field to remove; may be repeated: ${CLEARABLE.join(', ')}`,
      clearableField,
    ),
    ...connectionOptions(),
  ],
  examples: ['webhooks update "Production pager" --rate-limit 5 --clear labels'],
  async run(context, options, [reference = '']) {
    const { name, endpoint, event, job, description, active, inactive, clear = [] } = options;
    if (active && inactive) throw new UsageError('Give --active or --inactive, not both.');
    const client = await connect(context.env, options);
    const current = await resolveWebhook(client, reference);
    const stored = {
      ...(!clear.includes('filters') && { filters: current.filters }),
      ...(!clear.includes('labels') && { labels: current.labels }),
    };
    const webhook = await client.put(WEBHOOK_PATH, {
      path: { webhook_id: current.id },
      // The fields that are not given are those of this version.
      headers: { 'if-match': `"${current.updated_at}"` },
      body: {
        name: name ?? current.name,
        client_url: endpoint ?? current.client_url,
        event_types: event ?? current.event_types,
        job_ids: job ?? current.job_ids.map(Number),
        description: description ?? current.description,
        ...((active || inactive) && { active: active === true }),
        ...Object.fromEntries(clear.map((field) => [field, null])),
        ...withStoredMembers(optionalFields(options), stored),
      },
    });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};

export const duplicate: Command<ConnectionOptions & { name?: string }> = {
  name: 'duplicate',
  summary: 'create an inactive copy of a webhook',
  description: 'Creates an inactive copy with a new secret, and shows the secret; it cannot be shown again.',
  arguments: [WEBHOOK_ARGUMENT],
  options: [
    option('--name <name>', 'name of the copy; default: the same with the suffix (copy)'),
    ...connectionOptions(),
  ],
  examples: ['webhooks duplicate "Production pager" --name "Staging pager"'],
  async run(context, { name, ...connection }, [reference = '']) {
    const client = await connect(context.env, connection);
    const { id } = await resolveWebhook(client, reference);
    const webhook = await client.post(`${WEBHOOK_PATH}/duplicate`, {
      path: { webhook_id: id },
      body: { ...(name !== undefined && { name }) },
    });
    await context.writeResult(webhookText(webhook), webhook);
    return 0;
  },
};
