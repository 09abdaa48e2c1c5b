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

// A quarantined item does not end, but no other item waits for it.
const UNENDED_DELIVERIES = `
  SELECT d.id FROM unnest($1::date[], $2::text[], $3::bigint[]) AS i (day, id, account_id)
  JOIN deliveries d ON d.day = i.day AND d.id = i.id AND d.account_id = i.account_id
  WHERE d.status NOT IN ('delivered', 'failed', 'cancelled') AND d.trigger = 'automatic' AND ${inDays('$4', 'i', 'd')}`;
const UNDISPATCHED = `
  SELECT u.event_id AS id FROM unnest($1::date[], $2::text[], $3::bigint[]) AS i (day, id, account_id)
  JOIN undispatched_events u ON u.day = i.day AND u.event_id = i.id AND u.account_id = i.account_id`;

/** Returns the waiting deliveries whose earlier one has ended, does not exist, or is set aside. */
export async function withEndedPredecessor(
  pool: Pool,
  waiting: readonly WaitingDelivery[],
): Promise<WaitingDelivery[]> {
  if (waiting.length === 0) return [];
  const keyOf = (one: WaitingDelivery): DeliveryKey => ({
    accountId: one.accountId,
    deliveryId: deliveryIdFor(one.waitsForEventId, one.subscriptionId),
  });
  const eventIds = waiting.map(({ waitsForEventId }) => waitsForEventId);
  const days = eventIds.map((id) => idDay('event', id));
  // Events first: one that is dispatched between the two statements has its deliveries in the second.
  const undispatched = await idsOf(pool, UNDISPATCHED, 'undispatched-among', [
    days,
    eventIds,
    waiting.map(({ accountId }) => accountId),
  ]);
  const unended = await idsOf(pool, UNENDED_DELIVERIES, 'unended-among', keyParameters(waiting.map(keyOf)));
  const open = {
    event: waiting.filter(({ waitsForEventId }) => undispatched.has(waitsForEventId)),
    delivery: waiting.filter((one) => unended.has(keyOf(one).deliveryId)),
  };
  const blocked = new Set([
    ...(await withoutQuarantined(pool, 'event', open.event, ({ accountId, waitsForEventId: key }) => ({
      accountId,
      key,
    }))),
    ...(await withoutQuarantined(pool, 'delivery', open.delivery, (one) => ({
      accountId: one.accountId,
      key: keyOf(one).deliveryId,
    }))),
  ]);
  return waiting.filter((one) => !blocked.has(one));
}

async function idsOf(pool: Pool, text: string, name: string, values: unknown[]): Promise<Set<string>> {
  const rows = await runStatement<{ id: string }>(pool, text, values, name);
  return new Set(rows.map(({ id }) => id));
}

const RELEASE = `
  WITH i AS MATERIALIZED (
    SELECT day, id, account_id, waits_for, now() AS at
    FROM unnest($1::date[], $2::text[], $3::bigint[], $5::text[]) AS u (day, id, account_id, waits_for)
    WHERE ${inDays('$4', 'u')}
  )
  UPDATE deliveries d SET deferred_at = i.at
  FROM i
  WHERE d.day = i.day AND d.id = i.id AND d.account_id = i.account_id AND ${inDays('$4', 'd')}
    AND d.deferred_at = 'infinity' AND d.waits_for_event_id = i.waits_for`;

/** Returns deliveries to their lanes unless they wait for another event by now. Their 24 hours begin now. */
export async function releaseWaiting(pool: Pool, waiting: readonly WaitingDelivery[]): Promise<void> {
  if (waiting.length === 0) return;
  const values = [...keyParameters(waiting), waiting.map(({ waitsForEventId }) => waitsForEventId)];
  await runStatement(pool, RELEASE, values, 'release-waiting');
}

/** Returns the events of a subscription that are set aside, or whose deliveries are. */
export async function quarantinedAmong(
  pool: Pool,
  { accountId, subscriptionId, eventIds }: LaneKey & { eventIds: readonly string[] },
): Promise<Set<string>> {
  const deliveryKeyOf = (eventId: string) => ({ accountId, key: deliveryIdFor(eventId, subscriptionId) });
  const events = await withoutQuarantined(pool, 'event', eventIds, (key) => ({ accountId, key }));
  const deliveries = await withoutQuarantined(pool, 'delivery', eventIds, deliveryKeyOf);
  return new Set(eventIds.filter((id) => !events.includes(id) || !deliveries.includes(id)));
}
