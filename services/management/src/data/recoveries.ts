import { type Database, runStatement } from '@runhook/database';
import type { RecoverableStatus, RecoveryView } from '../domain/recovery-view.ts';
import { microsOf, timestampOf } from './micros.ts';

type Pool = Database['pool'];

const COLUMNS = `
  r.id, r.subscription_id, r.status, r.reason, ${microsOf('r.since')} AS since, ${microsOf('r.until')} AS until,
  r.delivery_status, r.total_count, r.recovered_count, ${microsOf('r.created_at')} AS created_at,
  ${microsOf('r.completed_at')} AS completed_at`;

export interface NewRecovery {
  id: string;
  subscriptionId: string;
  /** Microseconds since the epoch, as digits. */
  since: string;
  /** As `since`; null for now. */
  until: string | null;
  deliveryStatus: RecoverableStatus;
}

// Two at once are parted by the index of what is running; the loser's insert adds nothing. Days beyond the one after
// `until` are left unread, as in the list of deliveries. What completes later is not matched: it may be what this very
// recovery put back, failed again. The dispatcher's pages hold the same conditions.
const INSERT = `
  WITH asked AS (
    SELECT s.id AS subscription_id, ${timestampOf('$3')} AS since, COALESCE(${timestampOf('$4')}, now()) AS until
    FROM subscriptions s
    WHERE s.id = $2 AND s.active AND s.deleted_at IS NULL
      AND NOT EXISTS (SELECT FROM recoveries WHERE subscription_id = $2 AND status = 'running')
  ), counted AS (
    SELECT count(*)::int AS total
    FROM deliveries d, asked
    WHERE d.subscription_id = $2 AND d.status = $5 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= asked.since AND d.created_at < asked.until
      AND d.day <= (asked.until AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= now()
  )
  INSERT INTO recoveries AS r (id, subscription_id, status, since, until, delivery_status, total_count, completed_at)
  SELECT $1, asked.subscription_id, CASE total WHEN 0 THEN 'done' ELSE 'running' END, asked.since, asked.until, $5,
    total, CASE total WHEN 0 THEN now() END
  FROM asked, counted
  ON CONFLICT (subscription_id) WHERE status = 'running' DO NOTHING
  RETURNING ${COLUMNS}`;

/**
 * Counts what matches and begins a recovery of it, which is done at once when nothing does. Null when the subscription
 * is inactive or gone, or has a recovery that runs.
 */
export async function insertRecovery(pool: Pool, recovery: NewRecovery): Promise<RecoveryView | null> {
  const { id, subscriptionId, since, until, deliveryStatus } = recovery;
  const values = [id, subscriptionId, since, until, deliveryStatus];
  return (await runStatement<Row>(pool, INSERT, values))[0] ?? null;
}

type Row = RecoveryView & { [column: string]: unknown };

const SELECT_RUNNING = `SELECT id FROM recoveries WHERE subscription_id = $1 AND status = 'running'`;

/** The id of the subscription's recovery that runs, or null. */
export async function findRunningRecovery(pool: Pool, subscriptionId: string): Promise<string | null> {
  const [row] = await runStatement<{ id: string }>(pool, SELECT_RUNNING, [subscriptionId]);
  return row?.id ?? null;
}

const SELECT_ONE = `SELECT ${COLUMNS} FROM recoveries r WHERE r.id = $1 AND r.subscription_id = $2`;

export async function findRecovery(
  pool: Pool,
  { id, subscriptionId }: { id: string; subscriptionId: string },
): Promise<RecoveryView | null> {
  return (await runStatement<Row>(pool, SELECT_ONE, [id, subscriptionId]))[0] ?? null;
}
