import { eventJobId, isId } from '@runhook/contract';
import {
  listQuarantined,
  type Pool,
  type QuarantinedRow,
  releaseQuarantined,
  withdrawEvent,
} from '@runhook/database';
import { createQueueBackend, type IdentifiedEvent, JobsRejectedError, openEventQueue } from '@runhook/queue';
import { cancelDelivery, keyOfDelivery } from '../deliveries/by-operator.ts';

/** Items that one command releases or removes at most. */
const SETTLED_MAX = 1_000;

/** An item of `quarantined_items` in the form of a failed job. */
export function setAsideView({ kind, accountId, key, reason, message, createdAtMs }: QuarantinedRow) {
  return {
    queue: 'set aside',
    id: key,
    name: kind,
    account_id: accountId,
    reason,
    data: message ?? null,
    failed_at: new Date(createdAtMs).toISOString(),
    is_shortened: false,
  };
}

/**
 * Releases items that were set aside: an event that is not on record goes to the queue, and the reconciler puts back what is
 * on record. An event that the queue still rejects stays set aside.
 * @param keys all items when null
 */
export async function releaseSetAside(
  { pool, queueUrl }: { pool: Pool; queueUrl: string },
  keys: readonly string[] | null,
): Promise<{ released: string[]; left: string[] }> {
  const items = await listQuarantined(pool, { ...(keys && { keys }), limit: SETTLED_MAX });
  if (items.length === 0) return { released: [], left: [] };
  const left = new Set<string>();
  const queue = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  try {
    const messages = items.flatMap(({ kind, message }) =>
      kind === 'event' && message !== undefined ? [message as IdentifiedEvent] : [],
    );
    await queue.addEach(messages);
  } catch (error) {
    if (!(error instanceof JobsRejectedError)) throw error;
    for (const { jobId } of error.rejected) left.add(jobId);
  } finally {
    await queue.close();
  }
  const isLeft = ({ kind, accountId, key }: QuarantinedRow) =>
    kind === 'event' && left.has(eventJobId({ eventId: key, accountId }));
  const released = items.filter((item) => !isLeft(item));
  for (const item of released) await releaseQuarantined(pool, item);
  return { released: released.map(({ key }) => key), left: items.filter(isLeft).map(({ key }) => key) };
}

/** Removes items for good: an event is never dispatched, and a delivery is cancelled. Returns the keys that were found. */
export async function removeSetAside(pool: Pool, keys: readonly string[]): Promise<string[]> {
  const items = await listQuarantined(pool, { keys, limit: SETTLED_MAX });
  for (const item of items) {
    const { kind, key, accountId } = item;
    if (kind === 'event' && isId('event', key)) await withdrawEvent(pool, { accountId, eventId: key });
    const delivery = kind === 'delivery' ? await keyOfDelivery(pool, key) : null;
    if (delivery !== null) await cancelDelivery(pool, delivery);
    await releaseQuarantined(pool, item);
  }
  return items.map(({ key }) => key);
}
