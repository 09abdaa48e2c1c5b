import type { Client, Schemas } from '@runhook/client';
import { createHmacSecret, HMAC_SECRET_PATTERN } from '@runhook/contract';
import { InvalidArgumentError, type Option } from 'commander';
import { CliError, type Command, type Context, option, parsers, timeText, UsageError } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions, resolveWebhook } from './connection.ts';
import { type FeedEvent, followFeed, latestCursor } from './feed.ts';
import { isSuccess, post, postResultJson, postResultText } from './post.ts';

interface Options extends ConnectionOptions {
  webhook?: string;
  forward: string;
  secret?: string;
  replay?: string[];
  timeout: number;
}

/** Returns a new object, because commander modifies it. */
export function secretOption(): Option {
  return option(
    '--secret <secret>',
    'signing secret (whsec_…); default: a new one, which is shown',
    secretText,
  );
}

function secretText(text: string): string {
  if (!HMAC_SECRET_PATTERN.test(text))
    throw new InvalidArgumentError('It must be whsec_ followed by 32 bytes in base64.');
  return text;
}

export function timeoutOption(): Option {
  return option(
    '--timeout <seconds>',
    'time limit for the response of the endpoint',
    parsers.integer(1, 3_600),
  ).default(30);
}

export const listenCommand: Command<Options> = {
  name: 'listen',
  summary: 'forward events to your own machine, live or as a replay of deliveries',
  description:
    'Forwards each new event of a webhook to your URL, from its feed: the exact bytes of the body of a delivery, signed with a secret that is shown at the start. Each event is sent once, the oldest first, whatever your endpoint responds; the endpoint of the webhook, if it has one, gets its deliveries as usual. Runs until Ctrl-C. With --replay it sends the past deliveries of a run, an event or a single delivery, and exits with 1 unless every response was a 2xx.',
  options: [
    option('--webhook <webhook>', 'id or name of the webhook; optional with --replay run or event'),
    option('--forward <url>', 'URL to which events are sent', parsers.httpUrl).makeOptionMandatory(),
    option('--replay <what...>', 'run <id>, event <id> or delivery <id>'),
    secretOption(),
    timeoutOption(),
    ...connectionOptions(),
  ],
  examples: [
    'listen --webhook "Production pager" --forward http://localhost:8080/hook',
    'listen --webhook wsu_2rU0ZTYbOBXVEDmMJ8jLRfM9n1x --forward http://localhost:8080/hook --replay run 2482',
  ],
  async run(context, options) {
    const target = options.replay === undefined ? null : parseReplay(options.replay, options.webhook);
    if (target === null && options.webhook === undefined)
      throw new UsageError('Missing option --webhook: the id or name of a webhook.');
    const stopping = context.createStopSignal();
    const client = await connect(context.env, options);
    const webhook = options.webhook === undefined ? null : await resolveWebhook(client, options.webhook);
    const secret = options.secret ?? createHmacSecret();
    const forwarder = new Forwarder(context, client, { ...options, secret, stopping });
    const session = { webhook, secret, forward: options.forward, isReplay: target !== null };
    if (target !== null) {
      await announce(context, session);
      return await replay(client, webhook, target, forwarder);
    }
    const webhookId = webhook?.id ?? '';
    // Reads the cursor before the message, so that events after the message are forwarded.
    const cursor = await latestCursor(client, webhookId);
    await announce(context, session);
    const onNote = (text: string) => context.writeNote(text);
    for await (const event of followFeed(client, { webhookId, stopping, onNote }, cursor))
      if (!stopping.aborted) await forwarder.sendEvent(event);
    return 0;
  },
};

async function announce(
  context: Context,
  session: { webhook: Schemas['Subscription'] | null; secret: string; forward: string; isReplay: boolean },
): Promise<void> {
  const { webhook, secret, forward, isReplay } = session;
  const action = isReplay ? 'Replaying' : 'Listening';
  const webhookText = webhook === null ? '' : ` to ${webhook.name} (${webhook.id})`;
  await context.writeRow(
    `${isReplay ? action : action + webhookText}; forwarding to ${forward}\nsigned with  ${secret}`,
    {
      kind: 'started',
      webhook_id: webhook?.id ?? null,
      forward,
      secret,
    },
  );
}

type Delivery = Schemas['AccountDelivery'];

const DELIVERIES_PATH = '/api/v3/accounts/{account_id}/webhooks/deliveries';

/** A request with its row of output. */
interface Forwarded {
  prefix: string;
  fields: object;
  webhookId: string;
  eventId: string;
  body: string;
}

/** Forwards events and deliveries: one request for each, without a retry, whatever the endpoint responds. */
class Forwarder {
  readonly #context: Context;
  readonly #client: Client;
  readonly #options: Options & { secret: string; stopping: AbortSignal };
  readonly #headers = new Map<string, string | null>();

  constructor(
    context: Context,
    client: Client,
    options: Options & { secret: string; stopping: AbortSignal },
  ) {
    this.#context = context;
    this.#client = client;
    this.#options = options;
  }

  /** Resolves with true if the endpoint responded with a 2xx. */
  async send(delivery: Delivery): Promise<boolean> {
    const { id, event_id: eventId, event_type: type, run_id: runId, subscription_id: webhookId } = delivery;
    const { payload } = await this.#client.get(DELIVERY_PATH, {
      path: { webhook_id: webhookId, delivery_id: id },
    });
    const fields = { kind: 'delivery', delivery_id: id, event_id: eventId, event_type: type, run_id: runId };
    const prefix = `${timeText(delivery.created_at)}  ${type.padEnd(TYPE_WIDTH)}  run ${runId}  ${id}`;
    if (payload === null) {
      await this.#context.writeRow(`${prefix}  not sent: its event is no longer in the log`, {
        ...fields,
        status: null,
      });
      return false;
    }
    return await this.#post({ prefix, fields, webhookId, eventId, body: payload });
  }

  /** Resolves with true if the endpoint responded with a 2xx. */
  async sendEvent(event: FeedEvent): Promise<boolean> {
    const { eventId, eventType: type, timestamp, webhooksID: webhookId, data } = event;
    const fields = { kind: 'event', event_id: eventId, event_type: type, run_id: data.runId };
    const prefix = `${timestamp.slice(0, 19)}Z  ${type.padEnd(TYPE_WIDTH)}  run ${data.runId}  ${eventId}`;
    // The keys have the order of the body of a delivery, so the bytes are the same.
    return await this.#post({ prefix, fields, webhookId, eventId, body: JSON.stringify(event) });
  }

  async #post({ prefix, fields, webhookId, eventId, body }: Forwarded): Promise<boolean> {
    const { forward, secret, timeout, stopping } = this.#options;
    const message = { body, eventId, secret, signatureHeader: await this.#signatureHeader(webhookId) };
    const result = await post(forward, message, 1_000 * timeout, stopping);
    // A request that Ctrl-C aborted has no result of the endpoint.
    if (stopping.aborted && result.status === null) return false;
    await this.#context.writeRow(`${prefix}  ${postResultText(result)}`, {
      ...fields,
      ...postResultJson(result),
    });
    return isSuccess(result);
  }

  async #signatureHeader(webhookId: string): Promise<string | null> {
    const cachedHeader = this.#headers.get(webhookId);
    if (cachedHeader !== undefined) return cachedHeader;
    // If the webhook has been deleted, uses the default header.
    const webhook = await resolveWebhook(this.#client, webhookId).catch(() => null);
    const header = webhook?.signature_header ?? null;
    this.#headers.set(webhookId, header);
    return header;
  }
}

const DELIVERY_PATH =
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/delivery/{delivery_id}';
const TYPE_WIDTH = 'job.run.completed'.length;

interface ReplayTarget {
  kind: 'run' | 'event' | 'delivery';
  id: string;
}

function parseReplay([kind, id, ...rest]: readonly string[], webhook: string | undefined): ReplayTarget {
  const pattern = { run: /^\d{1,16}$/, event: /^wev_\w{27}$/, delivery: /^wdl_\w{27}$/ }[kind ?? ''];
  if (pattern === undefined || id === undefined || rest.length > 0 || !pattern.test(id))
    throw new UsageError(
      '--replay must be followed by run and its number, event and its id (wev_…), or delivery and its id (wdl_…).',
    );
  if (kind === 'delivery' && webhook === undefined)
    throw new UsageError('--replay delivery requires --webhook.');
  return { kind: kind as ReplayTarget['kind'], id };
}

async function replay(
  client: Client,
  webhook: Schemas['Subscription'] | null,
  { kind, id }: ReplayTarget,
  forwarder: Forwarder,
): Promise<0 | 1> {
  const deliveries: Delivery[] = [];
  if (kind === 'delivery' && webhook !== null) {
    const path = { webhook_id: webhook.id, delivery_id: id };
    deliveries.push((await client.get(DELIVERY_PATH, { path })) as unknown as Delivery);
  } else {
    const query = {
      [`${kind}_id`]: id,
      ...(webhook !== null && { subscription_id: webhook.id }),
      limit: 100,
    };
    for await (const delivery of client.list(DELIVERIES_PATH, { query })) deliveries.push(delivery);
  }
  if (deliveries.length === 0) throw new CliError('not_found', `There is no delivery of ${kind} ${id}.`);
  let areAllDelivered = true;
  deliveries.sort((a, b) => Number(BigInt(a.created_at) - BigInt(b.created_at)));
  for (const delivery of deliveries) areAllDelivered = (await forwarder.send(delivery)) && areAllDelivered;
  return areAllDelivered ? 0 : 1;
}
