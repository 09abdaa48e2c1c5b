import type { EventKey, EventType, JobRunEvent } from '@runhook/contract';
import { inDays, type Pool, runStatement, sentEventTypes } from '@runhook/database';
import { ORDERED_TYPES, type Predecessor, type RunDelivery } from '../policy/run-order.ts';
import type { LaneKey } from './deferred.ts';
import { type DeliveryKey, keyParameters, STILL_PENDING } from './deliveries.ts';
import { loadReadableEvents } from './event-states.ts';
import { releaseWaiting, withEndedPredecessor } from './waiting.ts';

/*
 * Statements for the order of a run (docs/adr/0072-ordered-webhooks.md). A delivery that waits for an earlier one of its
 * run has `deferred_at = 'infinity'`: its lane does not take it until the earlier one has ended.
 */

// Materialized, so that the index of runs is used: that of subscriptions leads to their whole log.
const DELIVERIES_OF_RUNS = `
  WITH d AS MATERIALIZED (
    SELECT id, subscription_id, event_id, event_type, run_id, status, trigger, attempt_count, deferred_at, next_attempt_at
    FROM deliveries WHERE account_id = $1 AND run_id = ANY ($3::bigint[])
  )
  SELECT id, event_id AS "eventId", event_type AS "eventType", run_id::text AS "runId",
    status = 'pending' AND trigger = 'automatic' AS "isUnended",
    attempt_count > 0 OR (status = 'pending' AND deferred_at IS NULL AND next_attempt_at IS NOT NULL) AS "isSent"
  FROM d WHERE subscription_id = $2`;

/** Returns the deliveries of the runs to the subscription, of any day. */
export async function loadRunDeliveries(
  pool: Pool,
  { subscriptionId, accountId }: LaneKey,
  runIds: readonly string[],
): Promise<RunDelivery[]> {
  const values = [accountId, subscriptionId, runIds];
  return await runStatement<RunDelivery & Columns>(pool, DELIVERIES_OF_RUNS, values, 'deliveries-of-runs');
}

interface Columns {
  [column: string]: unknown;
}

/** Runs of which an earlier event may be undispatched, by the types that have no delivery on record. */
export interface UnrecordedRuns extends LaneKey {
  /** Runs of a `job.run.errored` or `job.run.completed` without a `job.run.started`. */
  withoutStarted: readonly string[];
  /** Failed runs of a `job.run.completed` without a `job.run.errored`. */
  withoutErrored: readonly string[];
}

const EXPECTED = `
  SELECT s.event_types AS "eventTypes", s.format, ARRAY(
    SELECT r.id::text FROM runs r WHERE r.account_id = $2 AND r.id = ANY ($3::bigint[]) AND r.start_reported) AS started
  FROM subscriptions s WHERE s.id = $1`;

interface ExpectedRow {
  [column: string]: unknown;
  eventTypes: EventType[];
  format: string | null;
  /** Ids of the runs whose start was reported. */
  started: string[];
}

/** Maximum number of undispatched events whose runs are read, oldest ids first: an event that was overtaken is in flight. */
const UNDISPATCHED_READ_MAX = 10_000;

// The table has the events in flight only: its rows are read, because an index of runs would cost each event.
const UNDISPATCHED_OF_RUNS = `
  SELECT e.id AS "eventId", e.account_id AS "accountId"
  FROM (SELECT day, event_id, account_id FROM undispatched_events
        WHERE account_id = $1 ORDER BY event_id LIMIT ${UNDISPATCHED_READ_MAX}) AS u
  JOIN events e ON e.day = u.day AND e.id = u.event_id AND e.account_id = u.account_id
  WHERE e.account_id = $1 AND e.run_id = ANY ($2::bigint[]) AND e.event_type = ANY ($3::text[])`;

/**
 * Returns the undispatched events of the runs, of types that the subscription receives; null, without reading the table,
 * if no run can have one. An event that cannot be read is never sent, so no delivery waits for it.
 */
export async function loadUndispatchedOfRuns(
  pool: Pool,
  { accountId, subscriptionId, withoutStarted, withoutErrored }: UnrecordedRuns,
): Promise<JobRunEvent[] | null> {
  const [expected] = await runStatement<ExpectedRow>(
    pool,
    EXPECTED,
    [subscriptionId, accountId, withoutStarted],
    'expected-events',
  );
  if (expected === undefined) return null;
  const { eventTypes, format, started } = expected;
  const types = sentEventTypes(eventTypes, format);
  const runIds = new Set([
    ...(types.includes('job.run.started') ? started : []),
    ...(types.includes('job.run.errored') ? withoutErrored : []),
  ]);
  if (runIds.size === 0) return null;
  const keys = await runStatement<EventKey & Columns>(
    pool,
    UNDISPATCHED_OF_RUNS,
    [accountId, [...runIds], types],
    'undispatched-of-runs',
  );
  return keys.length === 0 ? [] : await loadReadableEvents(pool, keys);
}

/** A delivery that its lane has taken and that must wait for an earlier event of its run. */
export interface WaitingDelivery extends DeliveryKey {
  predecessor: Predecessor;
}

const HOLD = `
  WITH i AS MATERIALIZED (
    SELECT * FROM unnest($1::date[], $2::text[], $3::bigint[], $5::text[], $6::text[])
      AS u (day, id, account_id, event_id, event_type)
    WHERE ${inDays('$4', 'u')}
  )
  UPDATE deliveries d
  SET deferred_at = 'infinity', next_attempt_at = NULL, waits_for_event_id = i.event_id, waits_for_event_type = i.event_type
  FROM i
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${STILL_PENDING}
    AND ${inDays('$4', 'd')}`;

/** Lets deliveries of a lane wait, unless their predecessors end meanwhile. */
export async function holdDeliveries(
  pool: Pool,
  { subscriptionId }: LaneKey,
  deliveries: readonly WaitingDelivery[],
): Promise<void> {
  const values = [
    ...keyParameters(deliveries),
    deliveries.map(({ predecessor }) => predecessor.eventId),
    deliveries.map(({ predecessor }) => predecessor.eventType),
  ];
  await runStatement(pool, HOLD, values, 'hold-deliveries');
  // A predecessor that ended before the commit of the statement released nothing.
  const waiting = deliveries.map(({ predecessor, ...key }) => ({
    ...key,
    subscriptionId,
    waitsForEventId: predecessor.eventId,
  }));
  await releaseWaiting(pool, await withEndedPredecessor(pool, waiting));
}

const MARK_OUT_OF_ORDER = `
  UPDATE deliveries d SET out_of_order = true
  FROM unnest($1::date[], $2::text[], $3::bigint[]) AS i (day, id, account_id)
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${inDays('$4', 'i', 'd')}`;

/** Marks deliveries that are sent after a later one of their run. */
export async function markOutOfOrder(pool: Pool, keys: readonly DeliveryKey[]): Promise<void> {
  await runStatement(pool, MARK_OUT_OF_ORDER, keyParameters(keys), 'mark-out-of-order');
}

/** A delivery of an ordered subscription that has ended. */
export interface EndedDelivery extends LaneKey {
  eventId: string;
  /** Digits. */
  runId: string;
}

const RELEASE_SUCCESSORS = `
  WITH i AS MATERIALIZED (
    SELECT subscription_id, run_id, event_id, now() AS at
    FROM unnest($2::text[], $3::bigint[], $4::text[]) AS u (subscription_id, run_id, event_id)
  )
  UPDATE deliveries d SET deferred_at = i.at
  FROM i
  WHERE d.account_id = $1 AND d.subscription_id = i.subscription_id AND d.run_id = i.run_id
    AND d.deferred_at = 'infinity' AND d.waits_for_event_id = i.event_id`;

/** Returns the deliveries that wait for ended ones to their lanes. Their 24 hours begin now. */
export async function releaseSuccessors(pool: Pool, ended: readonly EndedDelivery[]): Promise<void> {
  for (const accountId of new Set(ended.map((one) => one.accountId))) {
    const ofAccount = ended.filter((one) => one.accountId === accountId);
    const values = [
      accountId,
      ofAccount.map(({ subscriptionId }) => subscriptionId),
      ofAccount.map(({ runId }) => runId),
      ofAccount.map(({ eventId }) => eventId),
    ];
    await runStatement(pool, RELEASE_SUCCESSORS, values, 'release-successors');
  }
}

const positionOf = (column: string) => `array_position(ARRAY['${ORDERED_TYPES.join("', '")}'], ${column})`;

// Materialized, so that now() is not a part of the assignment (record/deferred.ts).
const RESTART_EXPIRY = `
  WITH ended AS MATERIALIZED (
    SELECT d.day, d.id, d.account_id,
      max(CASE WHEN p.status = 'pending' AND p.trigger = 'automatic' THEN now() ELSE p.completed_at END) AS at
    FROM unnest($1::date[], $2::text[], $3::bigint[]) AS k (day, id, account_id)
    JOIN deliveries d ON d.day = k.day AND d.id = k.id AND d.account_id = k.account_id
    JOIN deliveries p ON p.account_id = d.account_id AND p.run_id = d.run_id AND p.subscription_id = d.subscription_id
      AND ${positionOf('p.event_type')} < ${positionOf('d.event_type')}
    WHERE d.account_id = $5 AND p.account_id = $5 AND d.trigger = 'automatic' AND ${inDays('$4', 'k', 'd')}
    GROUP BY d.day, d.id, d.account_id
  )
  UPDATE deliveries d SET deferred_at = ended.at
  FROM ended
  WHERE d.day = ended.day AND d.id = ended.id AND d.account_id = ended.account_id AND d.deferred_at < ended.at
    AND ${inDays('$4', 'd')}`;

/** Begins the 24 hours of deferred deliveries of an account when the last earlier one of their run ended, now if one has not. */
export async function restartExpiry(
  pool: Pool,
  accountId: number,
  keys: readonly DeliveryKey[],
): Promise<void> {
  await runStatement(pool, RESTART_EXPIRY, [...keyParameters(keys), accountId], 'restart-expiry');
}
