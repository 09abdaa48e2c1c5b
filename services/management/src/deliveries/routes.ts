import {
  EVENT_TYPES,
  formatByName,
  integerIdFromText,
  isId,
  type JobRunEvent,
  MASK,
  renderPayload,
} from '@runhook/contract';
import type { Pool } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, type AccountRequest, READ_WEBHOOKS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { createReader, oneOf, QueryReader, timestamp } from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import {
  requireSubscription,
  SUBSCRIPTION_PATH,
  subscriptionKey,
} from '../subscriptions/require-subscription.ts';
import {
  attemptView,
  DELIVERY_STATUSES,
  type DeliveryKey,
  type DeliveryWithEvent,
  deliveryView,
  findDelivery,
  listAttempts,
} from './delivery.ts';
import { createHourlyCounts } from './hourly-counts.ts';
import { listDeliveries } from './log-statements.ts';
import type { DeliveryFilters } from './page-locator.ts';
import { addRateLimitWaits } from './rate-limit-wait.ts';

const DELIVERIES_PATH = `${SUBSCRIPTION_PATH}/deliveries` as const;
export const RECOVER_PATH = `${SUBSCRIPTION_PATH}/recover` as const;
export const RECOVERIES_PATH = `${SUBSCRIPTION_PATH}/recoveries` as const;
export const RECOVERY_PATH = `${SUBSCRIPTION_PATH}/recovery/:recovery_id` as const;
export const STATISTICS_PATH = `${SUBSCRIPTION_PATH}/statistics` as const;
export const DELIVERY_PATH = `${SUBSCRIPTION_PATH}/delivery/:delivery_id` as const;

/** Subscriptions are read with Prisma Client, rows of the log with SQL by hand. */
export interface LogDependencies {
  prisma: PrismaClient;
  pool: Pool;
}

/** Dependencies of endpoints that list or count, which may read from a replica. */
export interface ListDependencies {
  prisma: PrismaClient;
  reads: ReplicaReads;
}

/** Endpoints of the log of deliveries (docs/contract.md#deliveries). */
export function deliveryEndpoints(
  deps: LogDependencies & ListDependencies & { consoleUrl: string | null },
): AccountEndpoint[] {
  return [listDeliveriesEndpoint(deps), getDeliveryEndpoint(deps)];
}

/** Returns the key of the delivery that the path names, under that subscription. */
export function deliveryKey(subscription: { id: string }, { account, param }: AccountRequest): DeliveryKey {
  const id = param('delivery_id');
  if (!isId('delivery', id)) throw deliveryNotFound();
  return { accountId: account.id, subscriptionId: subscription.id, id };
}

export function deliveryNotFound(): NotFoundError {
  return new NotFoundError('Delivery not found.');
}

const id = createReader(integerIdFromText, 'must be an id: digits');

/** Lists the log of a subscription (docs/contract.md#deliveries), newest first. */
function listDeliveriesEndpoint({ prisma, reads }: ListDependencies): AccountEndpoint {
  const hourlyCounts = createHourlyCounts(reads.background);
  return {
    method: 'GET',
    path: DELIVERIES_PATH,
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const reader = new QueryReader(request.query);
      const page = reader.page();
      const filters = readFilters(reader);
      reader.check();
      const { accountId, id: subscriptionId } = subscriptionKey(request);
      const query = { accountId, subscriptionId, filters, ...page };
      const database = reads.databaseFor(request);
      // Runs concurrently with the page, which is discarded if the subscription does not exist.
      const existenceCheck = requireSubscription(prisma, request);
      const [{ rows, totalCount }] = await Promise.all([
        listDeliveries(database, hourlyCounts, query, existenceCheck),
        existenceCheck,
      ]);
      const data = await addRateLimitWaits(database, rows.map(deliveryView));
      return { code: 200, data, extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

function readFilters(reader: QueryReader): DeliveryFilters {
  return {
    status: reader.optional('status', oneOf(DELIVERY_STATUSES)),
    eventType: reader.optional('event_type', oneOf(EVENT_TYPES)),
    runId: reader.optional('run_id', id),
    since: reader.optional('since', timestamp),
    until: reader.optional('until', timestamp),
  };
}

/** Returns one delivery with the body of its latest attempt and every attempt (docs/contract.md#deliveries). */
function getDeliveryEndpoint({
  prisma,
  pool,
  consoleUrl,
}: LogDependencies & { consoleUrl: string | null }): AccountEndpoint {
  return {
    method: 'GET',
    path: DELIVERY_PATH,
    access: READ_WEBHOOKS,
    async handle(request) {
      const subscription = await requireSubscription(prisma, request);
      const key = deliveryKey(subscription, request);
      const [row, attempts] = await Promise.all([findDelivery(pool, key), listAttempts(pool, key)]);
      if (!row) throw deliveryNotFound();
      const latest = attempts.at(-1);
      const [view] = await addRateLimitWaits(pool, [deliveryView(row)]);
      return {
        code: 200,
        data: {
          ...view,
          payload: payloadOf(row, latest === undefined ? subscription.format : latest.format, consoleUrl),
          attempts: attempts.map(attemptView),
        },
      };
    },
  };
}

/**
 * Renders the bytes that were sent, because the row has the webhook's name of that time; options of a format are masked.
 * @param formatName that of the latest attempt, or of the webhook if there is none
 */
function payloadOf(
  row: DeliveryWithEvent,
  formatName: string | null,
  consoleUrl: string | null,
): string | null {
  if (row.event_data === null) return null;
  const event = {
    accountId: Number(row.account_id),
    eventId: row.event_id,
    eventType: row.event_type,
    timestamp: row.event_timestamp ?? '',
    data: row.event_data,
  } as JobRunEvent;
  const subscription = { id: row.subscription_id, name: row.webhook_name };
  const format = formatName === null ? null : formatByName(formatName);
  if (format === null) return renderPayload(event, subscription);
  const options = Object.fromEntries(Object.keys(format.options).map((name) => [name, MASK]));
  // A format that sends nothing for the event has no body; the payload shows the event.
  return (
    format.render({ event, subscription, consoleUrl, options }).body ?? renderPayload(event, subscription)
  );
}
