import { inTransaction, type Pool, runStatement } from '@runhook/database';
import type { DeliveryQueue } from '@runhook/queue';
import {
  type BegunDelivery,
  beginRecoveryPage,
  cancelRecovery,
  runningRecoveries,
} from '../data/recoveries.ts';
import type { RetryPolicy } from '../retry-schedule.ts';
import { undeliverableReason } from '../turn.ts';

/** What one turn of the recoveries did. */
export interface RecoveryTurn {
  /** Deliveries put back. */
  deliveries: number;
  /** Recoveries that ended because their subscription or its account does not deliver any more. */
  cancelled: number;
}

export interface RecoverDependencies {
  pool: Pool;
  deliveries: Pick<DeliveryQueue, 'add'>;
  retryPolicy: RetryPolicy;
}

/** With the period of the turns, the pace at which an endpoint gets back what it missed. */
export const RECOVERY_PAGE_SIZE = 100;
/** So that one turn does not outlast its period by much; the youngest wait until others have ended. */
const RECOVERIES_MAX = 100;
const LOCK = `SELECT pg_try_advisory_xact_lock(hashtext('runhook.recover')) AS mine`;

/**
 * Takes the next page of each recovery that is running. The pages are committed before the queue hears of them, so that
 * no job finds its delivery as it was before; a crash in between leaves pending deliveries without a job, which the
 * reconciler puts back. Answers null when another dispatcher is at it.
 */
export async function recover(dependencies: RecoverDependencies): Promise<RecoveryTurn | null> {
  const { pool, deliveries, retryPolicy } = dependencies;
  const turn = await beginRecoveryTurn(pool);
  if (!turn) return null;
  const attemptsLeft = 1 + retryPolicy.retriesMax;
  await deliveries.add(
    turn.begun.map(({ id, cycle }) => ({ deliveryId: id, cycle, delayMs: 0, attemptsLeft })),
  );
  return { deliveries: turn.begun.length, cancelled: turn.cancelled };
}

/** The part of {@link recover} that PostgreSQL commits. */
export async function beginRecoveryTurn(
  pool: Pool,
): Promise<{ begun: BegunDelivery[]; cancelled: number } | null> {
  return await inTransaction(pool, async (transaction) => {
    const [lock] = await runStatement<{ mine: boolean }>(transaction, LOCK, []);
    if (!lock?.mine) return null;
    const begun: BegunDelivery[] = [];
    let cancelled = 0;
    for (const recovery of await runningRecoveries(transaction, RECOVERIES_MAX)) {
      const reason = undeliverableReason(recovery);
      if (reason === null) {
        begun.push(...(await beginRecoveryPage(transaction, recovery.id, RECOVERY_PAGE_SIZE)));
      } else {
        await cancelRecovery(transaction, recovery.id, reason);
        cancelled++;
      }
    }
    return { begun, cancelled };
  });
}
