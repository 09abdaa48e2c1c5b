import { isItemFault, type Pool, rejectionReason, runStatement, withoutQuarantined } from '@runhook/database';
import { callHalving } from '@runhook/runtime';
import type { Quarantine } from '../record/quarantine.ts';
import {
  loadWaiting,
  releaseWaiting,
  type WaitingCursor,
  type WaitingDelivery,
  withEndedPredecessor,
} from '../record/waiting.ts';

const PAGE_SIZE = 1_000;

export interface WaitingDependencies {
  pool: Pool;
  quarantine: Pick<Quarantine, 'setAside'>;
}

/**
 * Returns deliveries to their lanes that wait for an earlier one of their run without need: it has ended, but the
 * dispatcher that recorded its end was killed, or an operator cancelled it; or the subscription is no longer ordered or
 * active. Returns their number.
 */
export async function releaseEnded({ pool, quarantine }: WaitingDependencies): Promise<number> {
  let released = 0;
  let after: WaitingCursor | null = null;
  do {
    const page: Awaited<ReturnType<typeof loadWaiting>> = await loadWaiting(pool, after, PAGE_SIZE);
    released += await releasePage({ pool, quarantine }, page.waiting);
    after = page.last;
  } while (after !== null);
  return released;
}

const ORDERED_AMONG = `
  SELECT id FROM subscriptions WHERE id = ANY ($1::text[]) AND ordered AND active AND deleted_at IS NULL`;

async function releasePage(
  { pool, quarantine }: WaitingDependencies,
  waiting: readonly WaitingDelivery[],
): Promise<number> {
  if (waiting.length === 0) return 0;
  const subscriptionIds = [...new Set(waiting.map(({ subscriptionId }) => subscriptionId))];
  const rows = await runStatement<{ id: string }>(pool, ORDERED_AMONG, [subscriptionIds], 'ordered-among');
  const orderedIds = new Set(rows.map(({ id }) => id));
  const isOrdered = ({ subscriptionId }: WaitingDelivery) => orderedIds.has(subscriptionId);
  const free = [
    ...waiting.filter((one) => !isOrdered(one)),
    ...(await withEndedPredecessor(pool, waiting.filter(isOrdered))),
  ];
  const keyOf = ({ deliveryId: key, accountId }: WaitingDelivery) => ({ accountId, key });
  const releasable = await withoutQuarantined(pool, 'delivery', free, keyOf);
  const release = (part: readonly WaitingDelivery[]) => releaseWaiting(pool, part);
  const rejected = await callHalving(releasable, release, isItemFault);
  await quarantine.setAside(
    rejected.map(({ item, error }) => ({ kind: 'delivery', ...keyOf(item), reason: rejectionReason(error) })),
  );
  return releasable.length - rejected.length;
}
