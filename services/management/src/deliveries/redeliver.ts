// SQL by hand: the log; begun and undone in one statement each, under the lock of the delivery.
import { attemptsLeft, idDay } from '@runhook/contract';
import { column, type Pool, queryRows, runStatement } from '@runhook/database';
import type { DeliveryQueue } from '@runhook/queue';
import { type AccountEndpoint, DEADLINE_MS, WRITE_WEBHOOKS } from '../http/endpoint.ts';
import { ConflictError } from '../http/errors.ts';
import { requiredSubscription } from '../subscriptions/required-subscription.ts';
import {
  DELIVERY,
  DELIVERY_COLUMNS,
  type DeliveryKey,
  type DeliveryRow,
  deliveryView,
  findDelivery,
} from './delivery.ts';
import { DELIVERY_PATH, deliveryKey, deliveryNotFound, type LogDependencies } from './routes.ts';

const PENDING = 'The delivery is still pending.';
const INACTIVE = 'The webhook is inactive: activate it to deliver again.';

/**
 * The same delivery, a fresh cycle: an attempt at once and its retries (docs/contract.md#redelivery). When the
 * queue does not take it, the delivery is put back as it was.
 */
export function redeliverEndpoint(
  deps: LogDependencies & { deliveryQueue: Pick<DeliveryQueue, 'add'>; deliveryMaxRetries: number },
): AccountEndpoint {
  const { prisma, pool, deliveryQueue, deliveryMaxRetries } = deps;
  return {
    method: 'POST',
    path: `${DELIVERY_PATH}/redeliver`,
    access: WRITE_WEBHOOKS,
    extraMs: DEADLINE_MS,
    async handle(request) {
      const subscription = await requiredSubscription(prisma, request);
      const key = deliveryKey(subscription, request);
      const row = await findDelivery(pool, key);
      if (!row) throw deliveryNotFound();
      const begun = await beginRedelivery(pool, key);
      if (!begun) throw new ConflictError(subscription.active ? PENDING : INACTIVE);
      try {
        const { cycle } = begun;
        const left = attemptsLeft({ retriesMax: deliveryMaxRetries }, { cycle, attemptCount: cycle });
        await deliveryQueue.add([{ deliveryId: key.id, cycle, delayMs: 0, attemptsLeft: left }]);
      } catch (error) {
        await undoRedelivery(pool, key.id, begun);
        throw error;
      }
      return { code: 202, data: deliveryView({ ...begun.delivery, event_data: row.event_data }) };
    },
  };
}

const RESTORED = ['status', 'reason', 'cycle', 'trigger', 'completed_at', 'next_attempt_at'] as const;

const BEGUN = { ...DELIVERY, cycle: column.integer, before: column.object };

/** A delivery that has begun another cycle, with what it was before, for the case that the queue does not take it. */
export interface BegunCycle {
  cycle: number;
  delivery: Omit<DeliveryRow, 'event_data'>;
  /** At least the columns of {@link RESTORED}. */
  before: Record<string, unknown>;
}

// The lock makes two at once take turns, and the one that waited finds the delivery pending. What was before comes
// as JSON, in which times are text: a Date would lose their microseconds on the way back.
const BEGIN = `
  WITH before AS (
    SELECT d.day, d.id, d.status, d.reason, d.cycle, d.trigger, d.completed_at, d.next_attempt_at
    FROM deliveries d
    WHERE d.day = $1 AND d.id = $2 AND d.subscription_id = $3 AND d.status <> 'pending'
      AND EXISTS (SELECT FROM subscriptions s WHERE s.id = $3 AND s.active AND s.deleted_at IS NULL)
    FOR UPDATE)
  UPDATE deliveries d
  SET status = 'pending', reason = NULL, cycle = d.attempt_count, trigger = 'manual', completed_at = NULL,
    next_attempt_at = now()
  FROM before
  WHERE d.day = before.day AND d.id = before.id
  RETURNING ${DELIVERY_COLUMNS}, d.cycle, to_json(before) AS before`;

/** Begins a manual cycle; null when the delivery is pending, or its subscription inactive or gone. */
async function beginRedelivery(pool: Pool, { id, subscriptionId }: DeliveryKey): Promise<BegunCycle | null> {
  const values = [idDay('delivery', id), id, subscriptionId];
  const [row] = await queryRows(pool, BEGUN, BEGIN, values);
  return row ? { cycle: row.cycle, before: row.before, delivery: row } : null;
}

// Only while nobody has touched it: the queue may have taken the job and lost no more than its answer.
const UNDO = `
  UPDATE deliveries
  SET status = $4, reason = $5, cycle = $6, trigger = $7, completed_at = $8::timestamptz,
    next_attempt_at = $9::timestamptz
  WHERE day = $1 AND id = $2 AND status = 'pending' AND trigger = 'manual' AND cycle = $3 AND attempt_count = $3`;

/** Puts the delivery back as it was before {@link beginRedelivery}. */
async function undoRedelivery(
  pool: Pool,
  deliveryId: string,
  { cycle, before }: Omit<BegunCycle, 'delivery'>,
): Promise<void> {
  const values = RESTORED.map((column) => before[column]);
  await runStatement(pool, UNDO, [idDay('delivery', deliveryId), deliveryId, cycle, ...values]);
}
