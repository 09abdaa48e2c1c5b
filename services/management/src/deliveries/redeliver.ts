// SQL by hand: starts a cycle in one statement under a lock of the delivery's row.
import { attemptsLeft, idDay } from '@runhook/contract';
import { column, inTransaction, queryRows, type Transaction } from '@runhook/database';
import type { DeliveryQueue, QueuedDelivery } from '@runhook/queue';
import { type Logger, withinDeadline } from '@runhook/runtime';
import { type AccountEndpoint, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError } from '../http/errors.ts';
import { requireEndpoint, requireSubscription } from '../subscriptions/require-subscription.ts';
import {
  DELIVERY,
  DELIVERY_COLUMNS,
  type DeliveryKey,
  type DeliveryRow,
  deliveryView,
  findDelivery,
} from './delivery.ts';
import { DELIVERY_PATH, deliveryKey, deliveryNotFound, type LogDependencies } from './routes.ts';

const PENDING_MESSAGE = 'The delivery is still pending.';
const INACTIVE_MESSAGE = 'The webhook is inactive: activate it to deliver again.';
/** Maximum wait for the queue: the redelivery is committed, so the caller does not wait for an unresponsive queue. */
const ENQUEUE_TIMEOUT_MS = 2_000;

export interface RedeliverDependencies extends LogDependencies {
  deliveryQueue: Pick<DeliveryQueue, 'add'>;
  deliveryMaxRetries: number;
  logger: Pick<Logger, 'warn'>;
  /** Time the caller waits for the queue; {@link ENQUEUE_TIMEOUT_MS} when omitted. */
  enqueueTimeoutMs?: number | undefined;
}

/**
 * Starts a new cycle of the delivery: an immediate attempt and its retries (docs/contract.md#redelivery). The commit
 * guarantees it, and a job in the queue starts it at once. A queue that does not respond may have accepted the job, so
 * nothing is undone: the dispatchers' reconciler queues pending deliveries without a job.
 */
export function redeliverEndpoint(deps: RedeliverDependencies): AccountEndpoint {
  const { prisma, pool, deliveryMaxRetries } = deps;
  return {
    method: 'POST',
    path: `${DELIVERY_PATH}/redeliver`,
    access: WRITE_WEBHOOKS,
    async handle(request) {
      const subscription = await requireSubscription(prisma, request);
      const key = deliveryKey(subscription, request);
      const row = await findDelivery(pool, key);
      if (!row) throw deliveryNotFound();
      requireEndpoint(subscription);
      const { cycle, response } = await inTransaction(pool, async (transaction) => {
        const redelivery = await beginRedelivery(transaction, key);
        if (!redelivery) throw new ConflictError(subscription.active ? PENDING_MESSAGE : INACTIVE_MESSAGE);
        const data = deliveryView({ ...redelivery.delivery, event_data: row.event_data });
        return { ...redelivery, response: await request.recorder.record(transaction, { code: 202, data }) };
      });
      const attemptsRemaining = attemptsLeft(
        { retriesMax: deliveryMaxRetries },
        { cycle, attemptCount: cycle },
      );
      const { id: deliveryId, accountId } = key;
      await enqueueNow(deps, { deliveryId, cycle, accountId, delayMs: 0, attemptsLeft: attemptsRemaining });
      return response;
    },
  };
}

async function enqueueNow(deps: RedeliverDependencies, delivery: QueuedDelivery): Promise<void> {
  const { deliveryQueue, logger, enqueueTimeoutMs = ENQUEUE_TIMEOUT_MS } = deps;
  try {
    await withinDeadline(enqueueTimeoutMs, () => deliveryQueue.add([delivery]));
  } catch (err) {
    const { deliveryId } = delivery;
    logger.warn({ err, deliveryId }, 'redelivery perhaps not queued: then the reconciler queues it');
  }
}

const REDELIVERY_COLUMNS = { ...DELIVERY, cycle: column.integer };

/** A delivery in a new cycle. */
interface NewCycle {
  cycle: number;
  delivery: Omit<DeliveryRow, 'event_data'>;
}

const ATTEMPT_COLUMNS = [
  'started_at',
  'request_headers',
  'response_headers',
  'response_body',
  'response_truncated',
  'dns_ms',
  'connect_ms',
  'tls_ms',
  'first_byte_ms',
  'total_ms',
  'format',
];

/** A separate statement: a log distributed over servers cannot lock rows and read a local table in one query. */
const SELECT_ACTIVE =
  "SELECT FROM subscriptions WHERE id = $1 AND active AND client_url <> '' AND deleted_at IS NULL";

// The row lock serializes concurrent calls; the second one finds the delivery pending. A single attempt is stored in
// the delivery's row, so it is moved to a row of `attempts` before the next one.
const BEGIN = `
  WITH locked AS MATERIALIZED (
    SELECT d.* FROM deliveries d
    WHERE d.day = $1 AND d.id = $2 AND d.account_id = $4 AND d.subscription_id = $3 AND d.status <> 'pending'
    FOR UPDATE
  ), moved AS (
    INSERT INTO attempts (day, account_id, delivery_id, number, trigger, duration_ms, http_status_code, ${ATTEMPT_COLUMNS})
    SELECT day, account_id, delivery_id, number, trigger, duration_ms, http_status_code, ${ATTEMPT_COLUMNS}
    FROM logged_attempts
    WHERE day = $1 AND delivery_id = $2 AND account_id = $4 AND EXISTS (SELECT FROM locked WHERE started_at IS NOT NULL)
  ), begun AS (
    UPDATE deliveries d
    SET status = 'pending', reason = NULL, cycle = d.attempt_count, trigger = 'manual', completed_at = NULL,
      next_attempt_at = now(), recovery_id = NULL,
      ${ATTEMPT_COLUMNS.map((column) => `${column} = NULL`)}
    FROM locked
    WHERE d.day = $1 AND d.id = $2 AND d.account_id = $4
    RETURNING d.*
  )
  SELECT ${DELIVERY_COLUMNS}, d.cycle FROM begun d`;

/** Starts a manual cycle; returns null if the delivery is pending, or its subscription inactive or deleted. */
export async function beginRedelivery(
  transaction: Transaction,
  { id, accountId, subscriptionId }: DeliveryKey,
): Promise<NewCycle | null> {
  const [active] = await queryRows(transaction, {}, SELECT_ACTIVE, [subscriptionId]);
  if (!active) return null;
  const values = [idDay('delivery', id), id, subscriptionId, accountId];
  const [row] = await queryRows(transaction, REDELIVERY_COLUMNS, BEGIN, values);
  return row ? { cycle: row.cycle, delivery: row } : null;
}
