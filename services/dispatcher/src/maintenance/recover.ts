import { attemptsLeft, type Deployment, type Plan } from '@runhook/contract';
import {
  type EventInclusion,
  inTransaction,
  isPermanentRejection,
  type Pool,
  type Queryable,
  rejectionReason,
  runStatement,
} from '@runhook/database';
import type { DeliveryQueue } from '@runhook/queue';
import { undeliverableReason } from '../policy/next-step.ts';
import type { RetryPolicy } from '../policy/outcome.ts';
import type { Quarantine } from '../record/quarantine.ts';
import { beginEventsPage, type StartedDelivery } from './recover-events.ts';

export interface RecoveryPassResult {
  /** Number of deliveries that were queued, most of them again. */
  queuedDeliveries: number;
  /** Number of recoveries that ended because nothing may be sent, or PostgreSQL rejected a page. */
  cancelledRecoveries: number;
}

export interface RecoverDependencies {
  pool: Pool;
  deliveries: Pick<DeliveryQueue, 'add'>;
  retryPolicy: RetryPolicy;
  quarantine: Pick<Quarantine, 'setAside'>;
}

/**
 * Maximum number of deliveries of each recovery that a pass queues; with the period of the passes, it determines the
 * rate at which an endpoint receives missed deliveries.
 */
const RECOVERY_PAGE_SIZE = 100;
/** Maximum number of recoveries of a pass. */
const RECOVERIES_MAX = 100;
/** Time after which a pass begins no further page. */
const PASS_MS = 10_000;

/**
 * Processes the next page of each running recovery, in separate transactions: the error of one stops no other.
 * Recoveries that another dispatcher is processing are skipped.
 * @param onError called with each error, after which a later pass repeats the page
 */
export async function recover(
  dependencies: RecoverDependencies,
  onError: (error: unknown) => void,
): Promise<RecoveryPassResult> {
  const { pool } = dependencies;
  const untilMs = performance.now() + PASS_MS;
  const result: RecoveryPassResult = { queuedDeliveries: 0, cancelledRecoveries: 0 };
  for (const running of await runningRecoveries(pool)) {
    if (performance.now() >= untilMs) break;
    try {
      const { queued, isCancelled } = await continueRecovery(dependencies, running);
      result.queuedDeliveries += queued;
      if (isCancelled) result.cancelledRecoveries++;
    } catch (error) {
      onError(error);
    }
  }
  return result;
}

/**
 * Pages are committed before their jobs are added, so that no job reads the previous state of its delivery; a crash in
 * between leaves pending deliveries without a job, which the reconciler queues again.
 */
async function continueRecovery(
  { pool, deliveries, retryPolicy, quarantine }: RecoverDependencies,
  { id, accountId }: RunningRecoveryKey,
): Promise<{ queued: number; isCancelled: boolean }> {
  let page: CommittedPage;
  try {
    page = await commitNextPage(pool, id);
  } catch (error) {
    if (!isPermanentRejection(error)) throw error;
    const reason = rejectionReason(error);
    await cancelRecovery(pool, id, reason);
    await quarantine.setAside([{ kind: 'recovery', accountId: Number(accountId), key: id, reason }]);
    return { queued: 0, isCancelled: true };
  }
  await deliveries.add(
    page.deliveries.map(({ id, accountId, cycle }) => ({
      deliveryId: id,
      cycle,
      accountId: Number(accountId),
      delayMs: 0,
      attemptsLeft: attemptsLeft(retryPolicy, { cycle, attemptCount: cycle }),
    })),
  );
  return { queued: page.deliveries.length, isCancelled: page.isCancelled };
}

/** The changes that {@link commitNextPage} committed. */
interface CommittedPage {
  deliveries: StartedDelivery[];
  isCancelled: boolean;
}

// A row lock would assign a transaction id, which holds the feeds of all accounts back (docs/adr/0070-feed.md) while the
// page is read.
const TRY_LOCK_RECOVERY = `
  SELECT pg_try_advisory_xact_lock(hashtext('runhook.recover'), hashtext($1)) AS "isAcquired"`;

/** Runs the part of {@link recover} that PostgreSQL commits, unless the recovery is locked or has ended. */
export async function commitNextPage(pool: Pool, recoveryId: string): Promise<CommittedPage> {
  return await inTransaction(pool, async (transaction) => {
    const nothing = { deliveries: [], isCancelled: false };
    const [lock] = await runStatement<{ isAcquired: boolean }>(transaction, TRY_LOCK_RECOVERY, [recoveryId]);
    if (!lock?.isAcquired) return nothing;
    const recovery = await loadRunningRecovery(transaction, recoveryId);
    if (recovery === null) return nothing;
    const reason = undeliverableReason(recovery);
    if (reason !== null) {
      await cancelRecovery(transaction, recoveryId, reason);
      return { deliveries: [], isCancelled: true };
    }
    const deliveries = await beginRecoveryPage(transaction, recovery, RECOVERY_PAGE_SIZE);
    return { deliveries, isCancelled: false };
  });
}

/**
 * A running recovery: its filter and position, with its current subscription and account. Times are in PostgreSQL's
 * format, with microseconds.
 */
interface RunningRecovery {
  id: string;
  active: boolean;
  clientUrl: string;
  deleted: boolean;
  plan: Plan;
  deployment: Deployment;
  accountId: string;
  subscriptionId: string;
  /** Status of its deliveries; null for a recovery of events. */
  status: string | null;
  include: EventInclusion | null;
  resendDelivered: boolean;
  since: string;
  until: string;
  createdAt: string;
  afterDay: string;
  afterCreatedAt: string;
  afterId: string;
}

// Not joined with the deliveries, which may be distributed over servers, while recoveries are not. A recovery of events
// adds deliveries, so it waits while its lane is full.
const FROM_RUNNING = `
  FROM recoveries r JOIN subscriptions s ON s.id = r.subscription_id JOIN accounts a ON a.id = s.account_id
  WHERE r.status = 'running'
    AND (r.include IS NULL OR s.lane_full_since IS NULL OR NOT s.active OR s.deleted_at IS NOT NULL)`;

const RUNNING = `
  SELECT r.id, s.account_id AS "accountId" ${FROM_RUNNING}
  ORDER BY row_number() OVER (PARTITION BY s.account_id ORDER BY r.created_at, r.id), random()
  LIMIT $1`;

type RunningRecoveryKey = Pick<RunningRecovery, 'id' | 'accountId'>;

/**
 * Returns the oldest running recovery of each account first, then the second ones, and so on. Those of one rank are in
 * random order, so that slow ones do not keep the same others from their page in each pass.
 */
async function runningRecoveries(database: Queryable): Promise<RunningRecoveryKey[]> {
  return await runStatement<RunningRecoveryKey & Columns>(
    database,
    RUNNING,
    [RECOVERIES_MAX],
    'running-recoveries',
  );
}

interface Columns {
  [column: string]: unknown;
}

const RUNNING_RECOVERY = `
  SELECT r.id, s.active, s.client_url AS "clientUrl", s.deleted_at IS NOT NULL AS deleted, a.plan, a.deployment,
    s.account_id AS "accountId", r.subscription_id AS "subscriptionId", r.delivery_status AS status,
    r.include, r.resend_delivered AS "resendDelivered", r.since::text, r.until::text, r.created_at::text AS "createdAt",
    coalesce(r.after_day, '-infinity')::text AS "afterDay",
    coalesce(r.after_created_at, '-infinity')::text AS "afterCreatedAt", coalesce(r.after_id, '') AS "afterId"
  ${FROM_RUNNING} AND r.id = $1`;

/** Returns null if the recovery has ended or must wait. */
async function loadRunningRecovery(database: Queryable, id: string): Promise<RunningRecovery | null> {
  const rows = await runStatement<RunningRecovery & Columns>(
    database,
    RUNNING_RECOVERY,
    [id],
    'running-recovery',
  );
  return rows[0] ?? null;
}

// The window bounds the index scan, which starts at the position where the last page ended. A delivery that a manual
// redelivery has taken meanwhile is skipped: it counts for the length of the page, but not for the recovery. Deliveries
// that completed after the recovery was created are excluded, because the recovery may have redelivered them.
// Management counts by the same conditions.
const BEGIN_PAGE = `
  WITH page AS MATERIALIZED (
    SELECT d.day, d.created_at, d.id
    FROM deliveries d
    WHERE d.account_id = $1 AND d.subscription_id = $2 AND d.status = $3 AND d.status IN ('failed', 'cancelled')
      AND d.created_at >= $4::timestamptz AND d.created_at < $5::timestamptz
      AND d.day >= $7::date AND d.day <= ($5::timestamptz AT TIME ZONE 'UTC')::date + 1
      AND (d.day, d.created_at, d.id) > ($7::date, $8::timestamptz, $9::text)
      AND d.completed_at <= $6::timestamptz
    ORDER BY d.day, d.created_at, d.id
    LIMIT $10
  ), begun AS (
    UPDATE deliveries d
    SET status = 'pending', reason = NULL, cycle = d.attempt_count, trigger = 'manual', completed_at = NULL,
      next_attempt_at = now(), recovery_id = $11
    FROM page
    WHERE d.day = page.day AND d.id = page.id AND d.account_id = $1 AND d.status = $3
      AND d.day >= $7::date AND d.day <= ($5::timestamptz AT TIME ZONE 'UTC')::date + 1
      AND d.completed_at <= $6::timestamptz
    RETURNING d.id, d.account_id, d.cycle
  )
  SELECT page.day::text, page.created_at::text AS "createdAt", page.id, begun.account_id AS "accountId", begun.cycle
  FROM page LEFT JOIN begun ON begun.id = page.id
  ORDER BY page.day, page.created_at, page.id`;

interface PageRow {
  day: string;
  createdAt: string;
  id: string;
  accountId: string | null;
  /** Null if a manual redelivery has taken the delivery meanwhile. */
  cycle: number | null;
  [column: string]: unknown;
}

const STORE_PROGRESS = `
  UPDATE recoveries
  SET recovered_count = recovered_count + $2, after_day = coalesce($3::date, after_day),
    after_created_at = coalesce($4::timestamptz, after_created_at), after_id = coalesce($5, after_id),
    status = CASE WHEN $6 THEN 'done' ELSE status END, completed_at = CASE WHEN $6 THEN clock_timestamp() END
  WHERE id = $1`;

/** Starts the next deliveries of a recovery and stores the position, in one transaction. The last page ends it. */
async function beginRecoveryPage(
  transaction: Queryable,
  recovery: RunningRecovery,
  pageSize: number,
): Promise<StartedDelivery[]> {
  const { include } = recovery;
  const { deliveries, end, isLast } =
    include === null
      ? await beginDeliveriesPage(transaction, recovery, pageSize)
      : await beginEventsPage(transaction, { ...recovery, include }, pageSize);
  const position = [end?.day ?? null, end?.createdAt ?? null, end?.id ?? null];
  await runStatement(
    transaction,
    STORE_PROGRESS,
    [recovery.id, deliveries.length, ...position, isLast],
    'store-recovery-progress',
  );
  return deliveries;
}

/** Starts a manual cycle for the next deliveries, as a manual redelivery does. A page that is not full is the last one. */
async function beginDeliveriesPage(
  transaction: Queryable,
  recovery: RunningRecovery,
  pageSize: number,
): Promise<{ deliveries: StartedDelivery[]; end: PageRow | null; isLast: boolean }> {
  const { accountId, subscriptionId, status, since, until, createdAt } = recovery;
  const { id: recoveryId, afterDay, afterCreatedAt, afterId } = recovery;
  const page = await runStatement<PageRow>(
    transaction,
    BEGIN_PAGE,
    [
      ...[accountId, subscriptionId, status, since, until, createdAt],
      ...[afterDay, afterCreatedAt, afterId, pageSize, recoveryId],
    ],
    'begin-recovery-page',
  );
  const deliveries = page.flatMap(({ id, accountId, cycle }) =>
    accountId === null || cycle === null ? [] : [{ id, accountId, cycle }],
  );
  return { deliveries, end: page.at(-1) ?? null, isLast: page.length < pageSize };
}

const CANCEL_RECOVERY = `
  UPDATE recoveries SET status = 'cancelled', reason = $2, completed_at = now() WHERE id = $1 AND status = 'running'`;

async function cancelRecovery(database: Queryable, recoveryId: string, reason: string): Promise<void> {
  await runStatement(database, CANCEL_RECOVERY, [recoveryId, reason], 'cancel-recovery');
}
