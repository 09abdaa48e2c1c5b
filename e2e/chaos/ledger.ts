import { runKey } from './endpoint.ts';
import type { Load } from './load.ts';
import type { Stores } from './servers.ts';
import {
  ATTEMPTS_MAX,
  countLoggedAttempts,
  countUnloggedArrivals,
  pairKey,
  type World as WorldOn,
} from './world.ts';

type World = WorldOn<Stores>;

/** The outcome of everything that was published during one fault. */
export interface Ledger {
  /** Events whose publisher got a success response. */
  published: number;
  /** Events that were committed although their publisher's call failed. */
  uncertain: number;
  /** Events times matching subscriptions: delivered + failed + cancelled + unrecorded + missing. */
  expected: number;
  delivered: number;
  /** Deliveries recorded as `failed` after all attempts, none of which got a 2xx response. */
  failed: number;
  /** Deliveries recorded as `cancelled`, because their subscription was made inactive. */
  cancelled: number;
  /**
   * Deliveries recorded as `failed` although the endpoint responded with 200 to an attempt that is not in the log: it was in flight
   * at a kill, so its result was never recorded. The event was delivered at least once.
   */
  unrecorded: number;
  missing: number;
  /** Accepted events that no longer exist, where the fault permits that. */
  lost: number;
  /** Number of lost events that arrived at the healthy endpoint. */
  lostAndDelivered: number;
  /** Requests that do not match an attempt in the log. */
  repeated: number;
  /** Attempts in flight at a kill, which is the permitted number of `repeated`. */
  inFlightAtKills: number;
  /** Longest time from the acceptance of an event to its first arrival at the healthy endpoint, in seconds. */
  longestWaitSeconds: number;
  /** Seconds from the kill to the first arrival of an event that was accepted well after it; null if there was none. */
  resumedSeconds: number | null;
  /** Sentences that describe problems; empty if there are none. */
  problems: string[];
}

export interface EventRow {
  id: string;
  event_type: string;
  run_id: string;
  /** Time when the deliveries of the event were planned, in milliseconds since the epoch; null without deliveries. */
  planned_at_ms: number | null;
  /** Whether it was fanned out after the leaving subscription became inactive, or nearly, so it need not have a delivery there. */
  after_leaving: boolean;
}

interface DeliveryRow {
  event_id: string;
  subscription_id: string;
  status: string;
  reason: string | null;
  attempt_count: number;
  /** Attempts whose response was incomplete or too late. */
  too_late: number;
  /** Attempts in the log, for diagnosis. */
  history: string | null;
}

export const SELECT_EVENTS = `
  SELECT e.id, e.event_type, e.run_id::text AS run_id, d.planned_at > s.updated_at AS after_leaving,
         (extract(epoch FROM d.planned_at) * 1000)::float8 AS planned_at_ms
  FROM events e JOIN subscriptions s ON s.id = $2
    LEFT JOIN (SELECT event_id, min(created_at) AS planned_at FROM deliveries WHERE account_id = $1 GROUP BY 1) d
      ON d.event_id = e.id
  WHERE e.account_id = $1`;
const SELECT_DELIVERIES = `
  SELECT event_id, subscription_id, status, reason, attempt_count,
         (SELECT count(*)::int FROM logged_attempts a
          WHERE a.day = d.day AND a.delivery_id = d.id AND a.error_code IN ('timeout', 'connection_reset')) AS too_late,
         (SELECT string_agg(concat(started_at::time, ' ', http_status_code, ' ', error_code), ', ' ORDER BY number)
          FROM logged_attempts a WHERE a.day = d.day AND a.delivery_id = d.id) AS history
  FROM deliveries d WHERE account_id = $1`;
/** Time after a kill from which accepted events were not in flight at the kill. */
const RESUMED_AFTER_MS = 500;
/**
 * Events that a fault may lose: `nothing`; `direct`, those published directly onto the queue; or `either`, those
 * published over REST as well.
 */
export type MayLose = 'nothing' | 'direct' | 'either';

/** Whether an accepted event may be lost. */
export function mayBeLost(key: string, { direct }: Load, mayLose: MayLose): boolean {
  return mayLose === 'either' || (mayLose === 'direct' && direct.has(key));
}

/**
 * Compares the received requests with the accepted events and with the database.
 * @param options `retriesPerDelivery`: the number of requests of a delivery that a job may have repeated after it was taken over from an
 * owner that was still running
 */
export async function createLedger(
  world: World,
  load: Load,
  { retriesPerDelivery = 0, mayLose = 'nothing' }: { retriesPerDelivery?: number; mayLose?: MayLose } = {},
): Promise<Ledger> {
  const { pool } = world.database;
  const { leaving, failing, healthy, flaky } = load.subscriptions;
  const { rows: events } = await pool.query<EventRow>(SELECT_EVENTS, [load.accountId, leaving]);
  const { rows } = await pool.query<DeliveryRow>(SELECT_DELIVERIES, [load.accountId]);
  const deliveries = new Map(rows.map((row) => [pairKey(row.event_id, row.subscription_id), row]));
  const arrivals = groupArrivals(world);
  const problems: string[] = [];
  const count = { delivered: 0, failed: 0, cancelled: 0, unrecorded: 0, missing: 0, lost: 0 };
  const arrivedRuns = new Set(
    world.endpoint.arrivals.filter(({ subscriptionId }) => subscriptionId === healthy).map(({ run }) => run),
  );
  let lostAndDelivered = 0;

  function countDelivery(eventId: string, subscriptionId: string): void {
    const key = pairKey(eventId, subscriptionId);
    const delivery = deliveries.get(key);
    const statuses = arrivals.get(key)?.map(({ status }) => status) ?? [];
    const inFlight = world.inFlightAtKills.get(key) ?? 0;
    const outcome = delivery
      ? findOutcome(delivery, { statuses, inFlight, leaving })
      : { problem: 'has no delivery' };
    if ('problem' in outcome) {
      count.missing += 1;
      problems.push(`${key} ${outcome.problem}; ${formatTrace(key)}`);
    } else count[outcome.counts] += 1;
  }

  function formatTrace(key: string): string {
    const arrivalTexts = arrivals
      .get(key)
      ?.map(({ status, arrivedAtMs }) => `${formatTime(arrivedAtMs)} ${status}`);
    return `logged: ${deliveries.get(key)?.history}; arrived: ${arrivalTexts?.join(', ')}`;
  }

  let expected = 0;
  for (const event of events) {
    const subscriptionIds = [healthy, flaky];
    if (event.event_type === 'job.run.completed') subscriptionIds.push(failing);
    const mayLackDelivery =
      event.after_leaving || (mayLose === 'either' && isPlannedAfterLostDeactivation(event, world, load));
    if (!mayLackDelivery || deliveries.has(pairKey(event.id, leaving))) subscriptionIds.push(leaving);
    expected += subscriptionIds.length;
    for (const subscriptionId of subscriptionIds) countDelivery(event.id, subscriptionId);
  }
  if (rows.length > expected) problems.push(`${rows.length} deliveries where ${expected} were expected`);

  const idOfRun = new Map(events.map((event) => [runKey(event.run_id, event.event_type), event.id]));
  const repeats = countUnloggedArrivals(world.endpoint, await countLoggedAttempts(world.database));
  for (const [key, count] of repeats) {
    const allowed = (world.inFlightAtKills.get(key) ?? 0) + retriesPerDelivery;
    if (count > allowed) problems.push(`${key} is repeated; ${formatTrace(key)}`);
  }
  let longestWaitMs = 0;
  let resumedAtMs = Number.POSITIVE_INFINITY;
  for (const [key, acceptedAtMs] of load.accepted) {
    const eventId = idOfRun.get(key);
    if (eventId === undefined && mayBeLost(key, load, mayLose)) {
      count.lost += 1;
      if (arrivedRuns.has(key)) lostAndDelivered += 1;
      continue;
    }
    if (eventId === undefined) {
      expected += 1;
      count.missing += 1;
      problems.push(`run ${key} was accepted and is not recorded`);
      continue;
    }
    const first = arrivals.get(pairKey(eventId, healthy))?.[0];
    if (!first) continue;
    longestWaitMs = Math.max(longestWaitMs, first.arrivedAtMs - acceptedAtMs);
    if (acceptedAtMs > world.killedAtMs + RESUMED_AFTER_MS)
      resumedAtMs = Math.min(resumedAtMs, first.arrivedAtMs);
  }
  return {
    published: load.accepted.size,
    uncertain: events.length - [...load.accepted.keys()].filter((key) => idOfRun.has(key)).length,
    expected,
    ...count,
    lostAndDelivered,
    repeated: sum(repeats),
    inFlightAtKills: sum(world.inFlightAtKills),
    longestWaitSeconds: longestWaitMs / 1_000,
    resumedSeconds:
      world.killedAtMs > 0 && Number.isFinite(resumedAtMs) ? (resumedAtMs - world.killedAtMs) / 1_000 : null,
    problems,
  };
}

/**
 * Returns whether the deliveries were planned on the lost primary after the leaving subscription was made inactive there. Requests
 * that were sent are recorded on the promoted replica, on which that subscription is active again.
 */
function isPlannedAfterLostDeactivation(
  { planned_at_ms: plannedAtMs }: EventRow,
  { recordReplacedAtMs }: World,
  { lostDeactivationMs }: Load,
): boolean {
  if (plannedAtMs === null || lostDeactivationMs === null) return false;
  return lostDeactivationMs < plannedAtMs && plannedAtMs < recordReplacedAtMs;
}

function groupArrivals({ endpoint }: World) {
  const groups = new Map<string, typeof endpoint.arrivals>();
  for (const arrival of endpoint.arrivals) {
    const key = pairKey(arrival.eventId, arrival.subscriptionId);
    const group = groups.get(key);
    if (group) group.push(arrival);
    else groups.set(key, [arrival]);
  }
  return groups;
}

function sum(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((total, count) => total + count, 0);
}

function formatTime(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(11, -1);
}

/** Returns the category of a delivery, or the problem with its end state. */
function findOutcome(
  { status, reason, attempt_count, too_late, subscription_id }: DeliveryRow,
  { statuses, inFlight, leaving }: { statuses: number[]; inFlight: number; leaving: string },
): { counts: 'delivered' | 'failed' | 'cancelled' | 'unrecorded' } | { problem: string } {
  if (attempt_count > ATTEMPTS_MAX) return { problem: `was attempted ${attempt_count} times` };
  const hasSuccess = statuses.filter((status) => status === 200).length;
  switch (status) {
    case 'delivered':
      return hasSuccess > 0 ? { counts: status } : { problem: 'is recorded as delivered, but never arrived' };
    case 'failed':
      if (attempt_count !== ATTEMPTS_MAX)
        return { problem: `is recorded as failed after ${attempt_count} attempts` };
      // A response after the deadline is recorded as a failure.
      if (hasSuccess <= too_late) return { counts: status };
      // Only a kill explains a response that was not recorded.
      return hasSuccess <= too_late + inFlight
        ? { counts: 'unrecorded' }
        : { problem: 'is recorded as failed, but the endpoint responded with 200' };
    case 'cancelled':
      return subscription_id === leaving
        ? { counts: status }
        : { problem: `is recorded as cancelled: ${reason}` };
    default:
      return { problem: `is ${status}` };
  }
}
