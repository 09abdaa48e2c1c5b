import { setTimeout as sleep } from 'node:timers/promises';
import { attemptsLeft, deliveryJobId, eventJobId, laneJobId } from '@runhook/contract';
import { type Pool, runStatement, withoutQuarantined } from '@runhook/database';
import { type DeliveryQueue, ENQUEUE_WINDOW_MS, type EventQueue, type MaintenanceTask } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import { lanesWithDeferred } from '../record/deferred.ts';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { type ReconcileDependencies, type RecordedEvent, requeueRecordedEvents } from './reconcile.ts';

/*
 * The reconciler searches for overdue items without a job. The audit does not rely on that: it checks a sample of all
 * undispatched events and all pending deliveries, due or not, for an owner. An owner is a queued or active job that has
 * the item, or a lane with a queued or active job.
 */

const AUDIT_EVERY_MS = 60_000;
/** Maximum number of events, of deliveries, and of lanes that an audit checks. */
const SAMPLE_MAX = 1_000;
/** Number of jobs that one audit reads of each list of the event queue. */
const JOBS_MAX = 500;
/** Time after which an item without an owner is checked again: its owner may have changed between two reads. */
const CONFIRM_AFTER_MS = 2_000;

type Kind = 'delivery' | 'event';

/** For each kind, the number of checked items, and of those that had no owner: they were queued again or set aside. */
export type AuditResult = Record<Kind, { checked: number; orphaned: number }>;

export interface AuditDependencies
  extends Pick<
    ReconcileDependencies,
    'pool' | 'quarantine' | 'retryPolicy' | 'graceMs' | 'eventGraceMs' | 'stopping'
  > {
  events: Pick<EventQueue, 'requeue' | 'findQueued' | 'sample'>;
  deliveries: Pick<
    DeliveryQueue,
    'requeue' | 'findQueued' | 'findQueuedLanes' | 'findActiveLanes' | 'requeueLanes'
  >;
  /** Random number from 0 to 1; `Math.random` when omitted. */
  random?: () => number;
  confirmAfterMs?: number;
  /** Maximum number of lanes that an audit checks. */
  lanesMax?: number | undefined;
}

/** Position from which the next audit continues. */
export interface AuditPosition {
  /** Id of the subscription whose lane was checked last; empty at the beginning. */
  lane: string;
}

export function auditTask(
  dependencies: AuditDependencies & {
    metrics: Pick<DispatcherMetrics, 'orphaned' | 'audited' | 'auditRepaired'>;
    logger: Pick<Logger, 'warn' | 'debug'>;
  },
): MaintenanceTask {
  const { metrics, logger } = dependencies;
  const position: AuditPosition = { lane: '' };
  return {
    name: 'audit',
    everyMs: AUDIT_EVERY_MS,
    async run() {
      const found = await audit(dependencies, position);
      for (const kind of ['delivery', 'event'] as const) {
        metrics.audited[kind].inc(found[kind].checked);
        metrics.orphaned[kind].set(found[kind].orphaned);
        metrics.auditRepaired[kind].inc(found[kind].orphaned);
      }
      const level = found.delivery.orphaned + found.event.orphaned > 0 ? 'warn' : 'debug';
      logger[level](found, 'audit completed: items without a job or lane were queued again or set aside');
    },
  };
}

/**
 * Checks a sample of each kind, and queues items without an owner again. Throws if a store is unavailable.
 * @param position is advanced
 */
export async function audit(dependencies: AuditDependencies, position: AuditPosition): Promise<AuditResult> {
  const event = await auditEvents(dependencies);
  const delivery = await auditDeliveries(dependencies);
  const lanes = await auditLanes(dependencies, position);
  return {
    event,
    delivery: {
      checked: delivery.checked + lanes.checked,
      orphaned: delivery.orphaned + lanes.orphaned,
    },
  };
}

// --- Events

interface UndispatchedEvent extends RecordedEvent {
  [column: string]: unknown;
  /** Time of the commit in milliseconds since the epoch. */
  since_ms: number;
}

const UNDISPATCHED = `
  SELECT day::text AS day, event_id AS id, account_id AS "accountId",
    (extract(epoch FROM created_at) * 1000)::float8 AS since_ms
  FROM undispatched_events
  WHERE created_at < now() - $1::int * interval '1 millisecond'
    AND created_at >= to_timestamp($2::float8 / 1000) AND created_at <= to_timestamp($3::float8 / 1000)
  ORDER BY created_at LIMIT $4`;
const STILL_UNDISPATCHED = `
  SELECT i.n::int AS n FROM unnest($1::date[], $2::text[], $3::bigint[]) WITH ORDINALITY AS i (day, id, account_id, n)
  JOIN undispatched_events o ON o.day = i.day AND o.event_id = i.id AND o.account_id = i.account_id`;

const keyOf = ({ id, accountId }: RecordedEvent) => ({ eventId: id, accountId: Number(accountId) });
const quarantineKeyOf = ({ id, accountId }: RecordedEvent) => ({ accountId: Number(accountId), key: id });
const idOf = (event: RecordedEvent) => eventJobId(keyOf(event));

/**
 * Reads a part of the queue, and checks that it contains each undispatched event that was committed in the time of that
 * part. An event reaches the queue within {@link ENQUEUE_WINDOW_MS} of its commit, or later in a separate job.
 */
async function auditEvents(dependencies: AuditDependencies): Promise<{ checked: number; orphaned: number }> {
  const { pool, events, eventGraceMs, random = Math.random } = dependencies;
  const fraction = random();
  const part = await events.sample({ fraction, jobsMax: JOBS_MAX });
  const sinceMs = part.sinceMs + ENQUEUE_WINDOW_MS;
  const untilMs = part.untilMs - 2 * ENQUEUE_WINDOW_MS;
  if (sinceMs > untilMs) return { checked: 0, orphaned: 0 };
  const bounds = [Math.max(sinceMs, 0), Math.min(untilMs, Date.UTC(9_999, 0))];
  const found = await runStatement<UndispatchedEvent>(pool, UNDISPATCHED, [
    eventGraceMs,
    ...bounds,
    SAMPLE_MAX,
  ]);
  const checked = await withoutQuarantined(pool, 'event', found, quarantineKeyOf);
  const suspects = await withoutSeparateJob(
    dependencies,
    checked.filter((event) => !part.ids.has(idOf(event))),
  );
  if (suspects.length === 0) return { checked: checked.length, orphaned: 0 };
  if (!(await confirmLater(dependencies))) return { checked: checked.length, orphaned: 0 };
  const secondSample = await events.sample({ fraction, jobsMax: JOBS_MAX });
  const undispatched = await stillUndispatched(pool, suspects);
  const orphaned = await withoutSeparateJob(
    dependencies,
    undispatched.filter((event) => !secondSample.ids.has(idOf(event))),
  );
  await requeueRecordedEvents(dependencies, orphaned);
  return { checked: checked.length, orphaned: orphaned.length };
}

/** Returns the events without a separate job. Each is passed to `findQueued` as old, so that it infers no shared job. */
async function withoutSeparateJob<Event extends RecordedEvent>(
  { events }: AuditDependencies,
  suspects: readonly Event[],
): Promise<Event[]> {
  if (suspects.length === 0) return [];
  const queued = await events.findQueued(suspects.map((event) => ({ ...keyOf(event), sinceMs: 0 })));
  return suspects.filter((event) => !queued.has(idOf(event)));
}

async function stillUndispatched<Event extends RecordedEvent>(
  pool: Pool,
  suspects: readonly Event[],
): Promise<Event[]> {
  const rows = await runStatement<{ n: number }>(pool, STILL_UNDISPATCHED, [
    suspects.map(({ day }) => day),
    suspects.map(({ id }) => id),
    suspects.map(({ accountId }) => accountId),
  ]);
  const undispatched = new Set(rows.map(({ n }) => n - 1));
  return suspects.filter((_, index) => undispatched.has(index));
}

// --- Deliveries

interface WaitingDelivery {
  [column: string]: unknown;
  day: string;
  id: string;
  /** Digits. */
  accountId: string;
  subscriptionId: string;
  eventId: string;
  cycle: number;
  attemptCount: number;
  /** Milliseconds from now until it is due; negative when it is overdue. */
  dueInMs: number;
  /** Due time in milliseconds since the epoch. */
  dueAtMs: number;
}

const DELIVERY_COLUMNS = `d.day::text AS day, d.id, d.account_id AS "accountId", d.subscription_id AS "subscriptionId",
    d.event_id AS "eventId", d.cycle, d.attempt_count AS "attemptCount",
    (extract(epoch FROM d.next_attempt_at - now()) * 1000)::float8 AS "dueInMs",
    (extract(epoch FROM d.next_attempt_at) * 1000)::float8 AS "dueAtMs"`;
/** An index gives both ends of the range, so choosing a random timestamp between them is cheap. */
const PENDING = `
  WITH ends AS MATERIALIZED (
    SELECT (SELECT next_attempt_at FROM deliveries WHERE status = 'pending' AND next_attempt_at IS NOT NULL
            ORDER BY next_attempt_at LIMIT 1) AS first,
           (SELECT next_attempt_at FROM deliveries WHERE status = 'pending' AND next_attempt_at IS NOT NULL
            ORDER BY next_attempt_at DESC LIMIT 1) AS last
  )
  SELECT ${DELIVERY_COLUMNS} FROM deliveries d
  WHERE d.status = 'pending' AND d.next_attempt_at >= (SELECT first + $1::float8 * (last - first) FROM ends)
  ORDER BY d.next_attempt_at LIMIT $2`;
const STILL_PENDING = `
  SELECT ${DELIVERY_COLUMNS} FROM unnest($1::date[], $2::text[], $3::bigint[], $4::int[], $5::int[]) AS i (day, id, account_id, cycle, attempts)
  JOIN deliveries d ON d.day = i.day AND d.id = i.id AND d.account_id = i.account_id
  WHERE d.status = 'pending' AND d.deferred_at IS NULL AND d.cycle = i.cycle AND d.attempt_count = i.attempts`;

async function auditDeliveries(
  dependencies: AuditDependencies,
): Promise<{ checked: number; orphaned: number }> {
  const { pool, deliveries, retryPolicy, graceMs, random = Math.random } = dependencies;
  const page = await runStatement<WaitingDelivery>(pool, PENDING, [random(), SAMPLE_MAX]);
  // An attempt may be in flight around the time at which it is due.
  const settled = page.filter(({ dueInMs }) => dueInMs < -graceMs || dueInMs > 0);
  const checked = await withoutQuarantined(pool, 'delivery', settled, quarantineKeyOf);
  const suspects = await withoutOwner(dependencies, checked);
  if (suspects.length === 0) return { checked: checked.length, orphaned: 0 };
  if (!(await confirmLater(dependencies))) return { checked: checked.length, orphaned: 0 };
  const stillPending = await runStatement<WaitingDelivery>(pool, STILL_PENDING, [
    suspects.map(({ day }) => day),
    suspects.map(({ id }) => id),
    suspects.map(({ accountId }) => accountId),
    suspects.map(({ cycle }) => cycle),
    suspects.map(({ attemptCount }) => attemptCount),
  ]);
  const orphaned = await withoutOwner(dependencies, stillPending);
  await deliveries.requeue(
    orphaned.map(({ id, accountId, cycle, attemptCount, dueInMs }) => ({
      deliveryId: id,
      cycle,
      accountId: Number(accountId),
      delayMs: Math.max(0, Math.round(dueInMs)),
      attemptsLeft: attemptsLeft(retryPolicy, { cycle, attemptCount }),
    })),
  );
  return { checked: checked.length, orphaned: orphaned.length };
}

/** Returns the deliveries without an owner. One with at most one attempt may still be in the job of its event. */
async function withoutOwner(
  { deliveries, events }: AuditDependencies,
  page: readonly WaitingDelivery[],
): Promise<WaitingDelivery[]> {
  if (page.length === 0) return [];
  const possiblyInEventJob = page.filter(({ attemptCount }) => attemptCount <= 1);
  const [queued, queuedEvents, activeLanes] = await Promise.all([
    deliveries.findQueued(
      page.map(({ id, accountId, cycle }) => ({ deliveryId: id, cycle, accountId: Number(accountId) })),
    ),
    events.findQueued(possiblyInEventJob.map((one) => ({ ...eventOf(one), sinceMs: one.dueAtMs }))),
    deliveries.findActiveLanes(),
  ]);
  return page.filter(
    (one) =>
      !queued.has(deliveryJobId({ deliveryId: one.id, cycle: one.cycle })) &&
      !(one.attemptCount <= 1 && queuedEvents.has(eventJobId(eventOf(one)))) &&
      !activeLanes.has(one.subscriptionId),
  );
}

const eventOf = ({ eventId, accountId }: WaitingDelivery) => ({ eventId, accountId: Number(accountId) });

// --- Lanes

/** Checks the next page of the lanes with deferred deliveries; after the last one, it begins with the first again. */
async function auditLanes(
  dependencies: AuditDependencies,
  position: AuditPosition,
): Promise<{ checked: number; orphaned: number }> {
  const { pool, deliveries, lanesMax = SAMPLE_MAX } = dependencies;
  const after = position.lane;
  const checked = await lanesWithDeferred(pool, after, lanesMax);
  position.lane = checked.length < lanesMax ? '' : (checked.at(-1)?.subscriptionId ?? '');
  const withoutJob = async (lanes: typeof checked) => {
    const queued = lanes.length === 0 ? new Set() : await deliveries.findQueuedLanes(lanes);
    return lanes.filter((lane) => !queued.has(laneJobId(lane)));
  };
  const suspects = await withoutJob(checked);
  if (suspects.length === 0) return { checked: checked.length, orphaned: 0 };
  if (!(await confirmLater(dependencies))) return { checked: checked.length, orphaned: 0 };
  const current = await lanesWithDeferred(pool, after, lanesMax);
  const names = new Set(current.map(({ subscriptionId }) => subscriptionId));
  const orphaned = await withoutJob(suspects.filter(({ subscriptionId }) => names.has(subscriptionId)));
  await deliveries.requeueLanes(orphaned);
  return { checked: checked.length, orphaned: orphaned.length };
}

/** Waits before the second check. Returns false if the dispatcher stops meanwhile: the items are then not judged. */
async function confirmLater({
  confirmAfterMs = CONFIRM_AFTER_MS,
  stopping,
}: AuditDependencies): Promise<boolean> {
  const options = stopping ? { signal: stopping } : {};
  return await sleep(confirmAfterMs, true, options).catch(() => false);
}
