import { deliveryIdFor, idDay } from '@runhook/contract';
import { inDays, type Pool, runStatement, withoutQuarantined } from '@runhook/database';
import type { LaneKey } from './deferred.ts';
import { type DeliveryKey, keyParameters } from './deliveries.ts';

/** A delivery that waits for an earlier one of its run. */
export interface WaitingDelivery extends DeliveryKey {
  subscriptionId: string;
  /** Event of the earlier delivery. */
  waitsForEventId: string;
}

interface WaitingRow {
  [column: string]: unknown;
  deliveryId: string;
  /** Digits. */
  accountId: string;
  subscriptionId: string;
  /** Digits. */
  runId: string;
  waitsForEventId: string;
}

/** Position in the order of subscriptions, runs and ids. */
export type WaitingCursor = Pick<WaitingRow, 'subscriptionId' | 'runId' | 'deliveryId'>;

const WAITING = `
  SELECT id AS "deliveryId", account_id AS "accountId", subscription_id AS "subscriptionId", run_id::text AS "runId",
    waits_for_event_id AS "waitsForEventId"
  FROM deliveries
  WHERE deferred_at = 'infinity' AND (subscription_id, run_id, id) > ($1::text, $2::bigint, $3::text)
  ORDER BY subscription_id, run_id, id
  LIMIT $4`;

/** Returns a page of all waiting deliveries, and the position of the next page; null if none follows. */
export async function loadWaiting(
  pool: Pool,
  after: WaitingCursor | null,
  limit: number,
): Promise<{ waiting: WaitingDelivery[]; last: WaitingCursor | null }> {
  const values = [after?.subscriptionId ?? '', after?.runId ?? '0', after?.deliveryId ?? '', limit];
  const rows = await runStatement<WaitingRow>(pool, WAITING, values, 'waiting-deliveries');
  const waiting = rows.map((row) => ({ ...row, accountId: Number(row.accountId) }));
  return { waiting, last: rows.length < limit ? null : (rows.at(-1) ?? null) };
}

const PREDECESSORS = `
  SELECT d.id, d.status NOT IN ('delivered', 'failed', 'cancelled') AND d.trigger = 'automatic' AS "isUnended"
  FROM unnest($1::date[], $2::text[], $3::bigint[]) AS i (day, id, account_id)
  JOIN deliveries d ON d.day = i.day AND d.id = i.id AND d.account_id = i.account_id
  WHERE ${inDays('$4', 'i', 'd')}`;
const UNDISPATCHED = `
  SELECT u.event_id AS id FROM unnest($1::date[], $2::text[], $3::bigint[]) AS i (day, id, account_id)
  JOIN undispatched_events u ON u.day = i.day AND u.event_id = i.id AND u.account_id = i.account_id`;

/** Returns the waiting deliveries whose earlier one has ended, does not exist, or is set aside. */
export async function withEndedPredecessor(
  pool: Pool,
  waiting: readonly WaitingDelivery[],
): Promise<WaitingDelivery[]> {
  if (waiting.length === 0) return [];
  const eventIds = waiting.map(({ waitsForEventId }) => waitsForEventId);
  const eventKeys = [
    eventIds.map((id) => idDay('event', id)),
    eventIds,
    waiting.map(({ accountId }) => accountId),
  ];
  // Events first: one that is dispatched between the two statements has its deliveries in the second.
  const events = await runStatement<{ id: string }>(pool, UNDISPATCHED, eventKeys, 'undispatched-among');
  const undispatched = new Set(events.map(({ id }) => id));
  const rows = await runStatement<{ id: string; isUnended: boolean }>(
    pool,
    PREDECESSORS,
    keyParameters(waiting.map(predecessorKeyOf)),
    'predecessors-of-waiting',
  );
  const isUnended = new Map(rows.map((row) => [row.id, row.isUnended]));
  const blocked = waiting.filter(
    (one) => isUnended.get(predecessorKeyOf(one).deliveryId) ?? undispatched.has(one.waitsForEventId),
  );
  const stillBlocked = new Set(await withoutSetAside(pool, blocked));
  return waiting.filter((one) => !stillBlocked.has(one));
}

function predecessorKeyOf({ accountId, subscriptionId, waitsForEventId }: WaitingDelivery): DeliveryKey {
  return { accountId, deliveryId: deliveryIdFor(waitsForEventId, subscriptionId) };
}

/** Removes the deliveries that wait for an item that is set aside: no other item waits for it. */
async function withoutSetAside(pool: Pool, waiting: readonly WaitingDelivery[]): Promise<WaitingDelivery[]> {
  const eventKeyOf = ({ accountId, waitsForEventId: key }: WaitingDelivery) => ({ accountId, key });
  const events = await withoutQuarantined(pool, 'event', waiting, eventKeyOf);
  return await withoutQuarantined(pool, 'delivery', events, (one) => {
    const { accountId, deliveryId: key } = predecessorKeyOf(one);
    return { accountId, key };
  });
}

// Not written with `=`, because the planner could then use the index of deferred deliveries instead of the key.
const RELEASE = `
  WITH i AS MATERIALIZED (
    SELECT day, id, account_id, waits_for, now() AS at
    FROM unnest($1::date[], $2::text[], $3::bigint[], $5::text[]) AS u (day, id, account_id, waits_for)
    WHERE ${inDays('$4', 'u')}
  )
  UPDATE deliveries d SET deferred_at = i.at
  FROM i
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${inDays('$4', 'd')}
    AND NOT isfinite(d.deferred_at) AND d.waits_for_event_id = i.waits_for`;

/** Returns deliveries to their lanes unless they wait for another event by now. Their 24 hours begin now. */
export async function releaseWaiting(pool: Pool, waiting: readonly WaitingDelivery[]): Promise<void> {
  if (waiting.length === 0) return;
  const values = [...keyParameters(waiting), waiting.map(({ waitsForEventId }) => waitsForEventId)];
  await runStatement(pool, RELEASE, values, 'release-waiting');
}

/** Returns the events of a subscription that are set aside, or whose deliveries are. */
export async function setAsideAmong(
  pool: Pool,
  { eventIds, ...lane }: LaneKey & { eventIds: readonly string[] },
): Promise<Set<string>> {
  const waiting = eventIds.map((waitsForEventId) => ({ ...lane, deliveryId: '', waitsForEventId }));
  const others = new Set(
    (await withoutSetAside(pool, waiting)).map(({ waitsForEventId }) => waitsForEventId),
  );
  return new Set(eventIds.filter((id) => !others.has(id)));
}
