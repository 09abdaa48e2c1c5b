import { attemptsLeft, deliveryJobId, type EventKey, eventJobId, type JobRunEvent } from '@runhook/contract';
import {
  isItemFault,
  type Pool,
  type Queryable,
  rejectionReason,
  runStatement,
  withoutQuarantined,
} from '@runhook/database';
import type { DeliveryQueue, EventQueue } from '@runhook/queue';
import { callHalving } from '@runhook/runtime';
import type { RetryPolicy } from '../policy/outcome.ts';
import { loadEvents } from '../record/event-states.ts';
import type { Quarantine } from '../record/quarantine.ts';

/** Number of lost items that the reconciler queued again, by kind; without events that it could not read. */
export type Reconciliation = Record<ItemKind, number>;

/** Undispatched events, and overdue deliveries. */
type ItemKind = 'event' | 'delivery';

export interface ReconcileDependencies {
  pool: Pool;
  events: Pick<EventQueue, 'requeue' | 'findQueued'>;
  deliveries: Pick<DeliveryQueue, 'requeue' | 'findQueued' | 'findActiveLanes'>;
  quarantine: Pick<Quarantine, 'setAside'>;
  retryPolicy: RetryPolicy;
  /** Time for which a delivery may be overdue before its queue job is searched; longer than an attempt's deadline. */
  graceMs: number;
  /** Time that an event may take to reach the queue, before it is searched there. */
  eventGraceMs: number;
  /** Number of items of a kind that a pass checks without finding a lost one before it ends; 20,000 when omitted. */
  checkedWithoutLossMax?: number;
  /** Number of items that one call to the queue checks; 10,000 when omitted. */
  pageSize?: number;
  /** Ends a pass after the current page. */
  stopping?: AbortSignal;
  /** Called for each page with lost items, once they are queued again, because a pass may take long. */
  onRequeued?: (kind: ItemKind, count: number) => void;
}

/**
 * Items that one call to the queue checks. It reads the wait list once for all of them, which takes Redis 0.1 s and the
 * dispatcher up to 0.8 s of CPU for a million waiting jobs.
 */
const PAGE_SIZE = 10_000;
/**
 * A pass without lost items ends after this number, and the next one continues there: searching costs 2,000 lookups a
 * second, whatever the backlog. A pass that finds lost items continues until all are queued again.
 */
const CHECKED_WITHOUT_LOSS_MAX = 20_000;

/**
 * PostgreSQL is the record: items that are pending there and no longer in the queue (a flushed or lost Redis, an
 * eviction, an operator's mistake) are queued again with their remaining attempts. Each scan checks overdue items page
 * by page, the longest overdue first, and stores its position in the database; neither scan stops the other. Throws the
 * errors of the scans when both have ended.
 */
export async function reconcile(dependencies: ReconcileDependencies): Promise<Reconciliation> {
  const scans = [
    scanOverdue(dependencies, 'event', requeueEventsPage),
    scanOverdue(dependencies, 'delivery', requeueDeliveriesPage),
  ];
  const [events, deliveries] = await Promise.allSettled(scans);
  const faults = [events, deliveries].flatMap((scan) => (scan?.status === 'rejected' ? [scan.reason] : []));
  if (faults.length > 1) throw new AggregateError(faults, 'Both scans of the reconciler failed.');
  if (faults.length > 0) throw faults[0];
  return { event: countOf(events), delivery: countOf(deliveries) };
}

const countOf = (scan?: PromiseSettledResult<number>) => (scan?.status === 'fulfilled' ? scan.value : 0);

/** Checks a page of overdue items after a position, and queues the lost ones again. */
type RequeuePage = (dependencies: ReconcileDependencies, database: Queryable, after: Cursor) => Promise<Page>;

/**
 * Position in the order of due times: microseconds since the epoch as digits, and the id for equal times. Events are in
 * the order of their ids, which begin with a time; the id is followed by the account, because accounts may use the same
 * one.
 */
interface Cursor {
  micros: string;
  id: string;
}

interface Page {
  requeued: number;
  /** Position of the last item that was checked; null when none follows. */
  last: Cursor | null;
}

async function scanOverdue(
  dependencies: ReconcileDependencies,
  kind: ItemKind,
  requeuePage: RequeuePage,
): Promise<number> {
  const {
    pool,
    stopping,
    onRequeued,
    checkedWithoutLossMax = CHECKED_WITHOUT_LOSS_MAX,
    pageSize = PAGE_SIZE,
  } = dependencies;
  let stored = await readCursor(pool, kind);
  let requeued = 0;
  let checkedWithoutLoss = 0;
  while (checkedWithoutLoss < checkedWithoutLossMax && !stopping?.aborted) {
    const page = await requeuePage(dependencies, pool, stored ?? BEGINNING);
    if (page.requeued > 0) onRequeued?.(kind, page.requeued);
    requeued += page.requeued;
    checkedWithoutLoss = page.requeued > 0 ? 0 : checkedWithoutLoss + pageSize;
    const isStored = await storeCursor(pool, kind, stored, page.last);
    if (!isStored || page.last === null) break;
    stored = page.last;
  }
  return requeued;
}

const READ_CURSOR = `
  SELECT (extract(epoch FROM after_timestamp) * 1000000)::bigint AS micros, after_id AS id
  FROM reconciler_cursors WHERE source = $1`;
/** Cursor before the first item. */
const BEGINNING: Cursor = { micros: '0', id: '' };
const timestampSql = (micros: string) => `timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond'`;
const STORE_CURSOR = `
  INSERT INTO reconciler_cursors AS stored (source, after_timestamp, after_id) VALUES ($1, ${timestampSql('$4')}, $5)
  ON CONFLICT (source) DO UPDATE SET after_timestamp = EXCLUDED.after_timestamp, after_id = EXCLUDED.after_id
  WHERE stored.after_timestamp = ${timestampSql('$2')} AND stored.after_id = $3
  RETURNING source`;
const CLEAR_CURSOR = `
  DELETE FROM reconciler_cursors WHERE source = $1 AND after_timestamp = ${timestampSql('$2')} AND after_id = $3 RETURNING source`;

async function readCursor(pool: Pool, kind: ItemKind): Promise<Cursor | null> {
  const [cursor] = await runStatement<Cursor & Columns>(pool, READ_CURSOR, [kind]);
  return cursor ?? null;
}

/**
 * Stores the position of the next page, null for the beginning. Returns false when another dispatcher has moved the
 * position since it was read: that dispatcher continues. No lock is held during the call to the queue; two dispatchers
 * at one page do no harm, because a job that exists is not added twice.
 */
async function storeCursor(
  pool: Pool,
  kind: ItemKind,
  stored: Cursor | null,
  last: Cursor | null,
): Promise<boolean> {
  if (last === null && stored === null) return true;
  const from = stored ?? BEGINNING;
  const values = [kind, from.micros, from.id];
  const changed =
    last === null
      ? await runStatement(pool, CLEAR_CURSOR, values)
      : await runStatement(pool, STORE_CURSOR, [...values, last.micros, last.id]);
  return changed.length > 0;
}

interface Columns {
  [column: string]: unknown;
}

const lastCursor = <Row extends Cursor>(page: readonly Row[], pageSize: number): Row | null =>
  page.length < pageSize ? null : (page.at(-1) ?? null);

async function requeueEventsPage(
  dependencies: ReconcileDependencies,
  database: Queryable,
  after: Cursor,
): Promise<Page> {
  const { events, eventGraceMs, pageSize = PAGE_SIZE } = dependencies;
  const [eventId = '', accountId = '0'] = after.id.split(' ');
  const values = [eventGraceMs, eventId, accountId, pageSize];
  const found = await runStatement<UndispatchedEvent>(database, UNDISPATCHED, values, 'undispatched-events');
  const page = await withoutQuarantined(database, 'event', found, quarantineKeyOf);
  const queued = await events.findQueued(
    page.map((event) => ({ ...keyOf(event), sinceMs: Number(event.since) / 1_000 })),
  );
  const lost = page.filter((event) => !queued.has(eventJobId(keyOf(event))));
  const requeued = await requeueRecordedEvents(dependencies, lost);
  const last = lastCursor(found, pageSize);
  return { requeued, last: last && { micros: last.micros, id: `${last.id} ${last.accountId}` } };
}

const quarantineKeyOf = ({ id, accountId }: { id: string; accountId: string }) => ({
  accountId: Number(accountId),
  key: id,
});

const keyOf = ({ id, accountId }: RecordedEvent): EventKey => ({
  eventId: id,
  accountId: Number(accountId),
});

/** Key of a row of `events`. */
export interface RecordedEvent {
  day: string;
  id: string;
  /** Digits. */
  accountId: string;
}

interface UndispatchedEvent extends Cursor, Columns, RecordedEvent {
  id: string;
  /** Time of the commit, in microseconds since the epoch as digits. */
  since: string;
}

/**
 * Events on record that no dispatcher has dispatched completely: a process was killed, or its queue was unavailable for
 * long. A time in the future comes from a clock that was ahead and has been corrected.
 */
const UNDISPATCHED = `
  SELECT day::text AS day, event_id AS id, account_id AS "accountId", (extract(epoch FROM day) * 1000000)::bigint AS micros,
         (extract(epoch FROM created_at) * 1000000)::bigint AS since
  FROM undispatched_events
  WHERE created_at NOT BETWEEN now() - $1::int * interval '1 millisecond' AND now()
    AND (event_id, account_id) > ($2, $3::bigint)
  ORDER BY event_id, account_id
  LIMIT $4`;

/** Number of events that are loaded at once, because one may have 524 KB of text. */
const EVENTS_LOADED = 25;

/**
 * Adds events that are on record to the queue, each in a separate job, and returns their number. An event that cannot be
 * read is set aside.
 */
export async function requeueRecordedEvents(
  { pool, events, quarantine }: Pick<ReconcileDependencies, 'pool' | 'events' | 'quarantine'>,
  lost: readonly RecordedEvent[],
): Promise<number> {
  let requeued = 0;
  for (let start = 0; start < lost.length; start += EVENTS_LOADED) {
    const loaded: JobRunEvent[] = [];
    const load = async (part: readonly RecordedEvent[]) =>
      void loaded.push(...(await loadEvents(pool, part.map(keyOf))));
    const unreadable = await callHalving(lost.slice(start, start + EVENTS_LOADED), load, isItemFault);
    await events.requeue(loaded);
    requeued += loaded.length;
    await quarantine.setAside(
      unreadable.map(({ item, error }) => ({
        kind: 'event',
        ...quarantineKeyOf(item),
        reason: rejectionReason(error),
      })),
    );
  }
  return requeued;
}

async function requeueDeliveriesPage(
  dependencies: ReconcileDependencies,
  database: Queryable,
  after: Cursor,
): Promise<Page> {
  const { deliveries, retryPolicy, graceMs, pageSize = PAGE_SIZE } = dependencies;
  const values = [graceMs, after.micros, after.id, pageSize];
  const found = await runStatement<OverdueDelivery>(
    database,
    SELECT_OVERDUE_DELIVERIES,
    values,
    'overdue-deliveries',
  );
  const page = await withoutQuarantined(database, 'delivery', found, quarantineKeyOf);
  const lost = await findLost(dependencies, page);
  await deliveries.requeue(
    lost.map(({ id, accountId, cycle, attemptCount }) => {
      const remainingAttempts = attemptsLeft(retryPolicy, { cycle, attemptCount });
      return {
        deliveryId: id,
        cycle,
        accountId: Number(accountId),
        delayMs: 0,
        attemptsLeft: remainingAttempts,
      };
    }),
  );
  return { requeued: lost.length, last: lastCursor(found, pageSize) };
}

interface OverdueDelivery extends Cursor, Columns {
  /** Digits. */
  accountId: string;
  subscriptionId: string;
  eventId: string;
  cycle: number;
  attemptCount: number;
  /** Whether it is overdue for such a short time that the job of its lane may still be working on it. */
  mayBeClaimed: boolean;
}

/**
 * A delivery that a lane's job has taken has no separate job, and is overdue while the database rejects its result.
 * After this time it counts as lost even if the lane has an active job, because a previous worker of the lane may have
 * taken it.
 */
const CLAIMED_BY_LANE_MINUTES = 1;

const SELECT_OVERDUE_DELIVERIES = `
  SELECT id, account_id AS "accountId", subscription_id AS "subscriptionId", event_id AS "eventId", cycle, attempt_count AS "attemptCount",
         next_attempt_at > now() - interval '${CLAIMED_BY_LANE_MINUTES} minutes' AS "mayBeClaimed",
         (extract(epoch FROM next_attempt_at) * 1000000)::bigint AS micros
  FROM deliveries
  WHERE status = 'pending' AND next_attempt_at < now() - $1::int * interval '1 millisecond'
    AND (next_attempt_at, id) > (timestamptz 'epoch' + $2::bigint * interval '1 microsecond', $3)
  ORDER BY next_attempt_at, id
  LIMIT $4`;

const eventOf = ({ eventId, accountId }: OverdueDelivery): EventKey => ({
  eventId,
  accountId: Number(accountId),
});

/** A first attempt is made by the event's job, so a delivery without attempts is lost only if that job does not exist. */
async function findLost({ events, deliveries }: ReconcileDependencies, page: readonly OverdueDelivery[]) {
  const withoutAttempts = page.filter(({ attemptCount }) => attemptCount === 0);
  const [queuedDeliveries, queuedEvents] = await Promise.all([
    deliveries.findQueued(
      page.map(({ id, accountId, cycle }) => ({ deliveryId: id, cycle, accountId: Number(accountId) })),
    ),
    events.findQueued(
      withoutAttempts.map((one) => ({ ...eventOf(one), sinceMs: Number(one.micros) / 1_000 })),
    ),
  ]);
  const jobless = page.filter(
    (one) =>
      !queuedDeliveries.has(deliveryJobId({ deliveryId: one.id, cycle: one.cycle })) &&
      (one.attemptCount > 0 || !queuedEvents.has(eventJobId(eventOf(one)))),
  );
  if (!jobless.some(({ mayBeClaimed }) => mayBeClaimed)) return jobless;
  const activeLanes = await deliveries.findActiveLanes();
  return jobless.filter(
    ({ subscriptionId, mayBeClaimed }) => !(mayBeClaimed && activeLanes.has(subscriptionId)),
  );
}
