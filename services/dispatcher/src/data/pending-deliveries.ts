import { idDay } from '@runhook/contract';
import { runStatement } from '@runhook/database';
import type pg from 'pg';

export interface PendingDelivery {
  id: string;
  cycle: number;
  attemptCount: number;
  /** Milliseconds until the next attempt is due; 0 when it is. */
  delayMs: number;
}

const PENDING_OF_EVENT = `
  SELECT id, cycle, attempt_count AS "attemptCount",
         greatest(0, coalesce((extract(epoch FROM next_attempt_at - now()) * 1000)::int, 0)) AS "delayMs"
  FROM deliveries WHERE day = $1 AND event_id = $2 AND status = 'pending'`;

/** What an interrupted event job left to do. */
export async function pendingDeliveriesOf(pool: pg.Pool, eventId: string): Promise<PendingDelivery[]> {
  return await runStatement<PendingDelivery & { [column: string]: unknown }>(
    pool,
    PENDING_OF_EVENT,
    [idDay('event', eventId), eventId],
    'pending-of-event',
  );
}
