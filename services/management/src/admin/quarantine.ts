import { eventJobId, isId } from '@runhook/contract';
import {
  listQuarantined,
  listQuarantinedKeys,
  type Pool,
  type QuarantinedRow,
  releaseQuarantined,
  withdrawEvent,
} from '@runhook/database';
import {
  createQueueBackend,
  type EventQueue,
  type IdentifiedEvent,
  JobsRejectedError,
  openEventQueue,
} from '@runhook/queue';
import { cancelDelivery, findDeliveryKey } from '../deliveries/operator-actions.ts';

/** Maximum number of keys whose items are read in one statement: the message of one item can have 524 KB. */
const KEYS_PER_STATEMENT = 50;

/** An item of `quarantined_items` in the form of a failed job. */
export function quarantinedItemView({ kind, accountId, key, reason, message, createdAtMs }: QuarantinedRow) {
  return {
    queue: 'quarantined',
    id: key,
    name: kind,
    account_id: accountId,
    reason,
    data: message ?? null,
    failed_at: new Date(createdAtMs).toISOString(),
    is_truncated: false,
  };
}

/**
 * Releases items that were set aside: an event with its message goes to the queue, and the reconciler queues items on
 * record. An event that the queue still rejects stays set aside.
 * @param keys all items when null, except conflicts: their events were probably published again after a change
 */
export async function releaseQuarantinedItems(
  { pool, queueUrl }: { pool: Pool; queueUrl: string },
  keys: readonly string[] | null,
): Promise<{ released: string[]; remaining: string[] }> {
  const outcome = { released: [] as string[], remaining: [] as string[] };
  const found = await listQuarantinedKeys(pool, keys);
  if (found.length === 0) return outcome;
  const queue = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  try {
    for await (const items of readItems(pool, found)) {
      const released = items.filter(({ kind }) => keys !== null || kind !== 'conflict');
      const rejected = await addMessages(queue, released);
      for (const item of items) {
        const isRemaining = !released.includes(item) || rejected.has(item);
        if (!isRemaining) await releaseQuarantined(pool, item);
        outcome[isRemaining ? 'remaining' : 'released'].push(item.key);
      }
    }
  } finally {
    await queue.close();
  }
  return outcome;
}

async function* readItems(pool: Pool, keys: readonly string[]): AsyncGenerator<QuarantinedRow[]> {
  for (let start = 0; start < keys.length; start += KEYS_PER_STATEMENT)
    yield await listQuarantined(pool, { keys: keys.slice(start, start + KEYS_PER_STATEMENT) });
}

/** Adds the messages of items to the queue. Returns the items whose message the queue rejects. */
async function addMessages(
  queue: Pick<EventQueue, 'addEach'>,
  items: readonly QuarantinedRow[],
): Promise<Set<QuarantinedRow>> {
  const itemsWithMessage = items.flatMap((item) =>
    item.message === undefined ? [] : [{ item, message: item.message as IdentifiedEvent }],
  );
  try {
    await queue.addEach(itemsWithMessage.map(({ message }) => message));
    return new Set();
  } catch (error) {
    if (!(error instanceof JobsRejectedError)) throw error;
    const jobIds = new Set(error.rejected.map(({ jobId }) => jobId));
    return new Set(
      itemsWithMessage.flatMap(({ item, message }) => (jobIds.has(eventJobId(message)) ? [item] : [])),
    );
  }
}

/**
 * Removes items permanently: an event is never dispatched, and a delivery is cancelled. Returns the keys that were
 * found.
 */
export async function removeQuarantinedItems(pool: Pool, keys: readonly string[]): Promise<string[]> {
  const found = await listQuarantinedKeys(pool, keys);
  for await (const items of readItems(pool, found)) for (const item of items) await removeItem(pool, item);
  return found;
}

async function removeItem(pool: Pool, item: QuarantinedRow): Promise<void> {
  const { kind, key, accountId } = item;
  if (kind === 'event' && isId('event', key)) await withdrawEvent(pool, { accountId, eventId: key });
  const delivery = kind === 'delivery' ? await findDeliveryKey(pool, key) : null;
  if (delivery !== null) await cancelDelivery(pool, delivery);
  await releaseQuarantined(pool, { kind, key, accountId });
}
