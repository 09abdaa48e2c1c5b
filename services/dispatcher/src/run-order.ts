import type { EventType, JobRunEvent } from '@runhook/contract';
import { deliveryKeyOf } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { type Delivery, matchSubscriptions } from './policy/next-step.ts';
import {
  hasSuccessors,
  isOrdered,
  isOutOfOrder,
  type Predecessor,
  predecessorOf,
  type RunDelivery,
  unrecordedTypes,
} from './policy/run-order.ts';
import type { LaneKey } from './record/deferred.ts';
import type { DeliveryKey } from './record/deliveries.ts';
import type { WaitingDelivery } from './record/run-order.ts';

/** State of the runs of several deliveries of an ordered subscription. */
interface Runs {
  recorded: readonly RunDelivery[];
  /** Events that match the subscription and whose deliveries are not on record yet. */
  undispatched: readonly JobRunEvent[];
}

/**
 * Returns the deliveries of an ordered subscription whose turn it is, of those that its lane has taken. The others wait,
 * without being in the lane, until the earlier deliveries of their runs have ended.
 */
export async function selectReady(
  dispatcher: Dispatcher,
  lane: LaneKey,
  taken: readonly Delivery[],
): Promise<readonly Delivery[]> {
  const { record } = dispatcher;
  const ordered = taken.filter(isOrdered);
  if (ordered.length === 0) return taken;
  const runs = await withoutSetAside(dispatcher, lane, ordered, await loadRuns(dispatcher, lane, ordered));
  const takenIds = new Set(taken.map(({ id }) => id));
  const takenBefore = runs.recorded.filter(({ id }) => !takenIds.has(id));
  const waiting: WaitingDelivery[] = [];
  const outOfOrder: DeliveryKey[] = [];
  for (const delivery of ordered) {
    const predecessor = predecessorOf(delivery, runs.recorded, runs.undispatched);
    if (predecessor !== null) waiting.push({ ...deliveryKeyOf(delivery), predecessor });
    else if (isOutOfOrder(delivery, takenBefore)) outOfOrder.push(deliveryKeyOf(delivery));
  }
  if (outOfOrder.length > 0) await record.markOutOfOrder(outOfOrder);
  if (waiting.length > 0) await record.holdDeliveries(lane, waiting);
  const waitingIds = new Set(waiting.map(({ deliveryId }) => deliveryId));
  return taken.filter(({ id }) => !waitingIds.has(id));
}

type EndedDelivery = Pick<Delivery, 'subscriptionId' | 'trigger' | 'event' | 'target'>;

/** Returns the deliveries that wait for one that has ended to their lane, which the caller must wake. */
export async function releaseSuccessors({ record }: Dispatcher, delivery: EndedDelivery): Promise<void> {
  const { subscriptionId, target, event } = delivery;
  if (!target?.ordered || !isOrdered(delivery) || !hasSuccessors(event.eventType)) return;
  const { accountId, eventId, data } = event;
  await record.releaseSuccessors({ accountId, subscriptionId, eventId, runId: data.runId });
}

async function loadRuns(dispatcher: Dispatcher, lane: LaneKey, ordered: readonly Delivery[]): Promise<Runs> {
  const { record } = dispatcher;
  const recorded = await record.loadRunDeliveries(lane, runIdsOf(ordered));
  const unrecorded = ordered.map((delivery) => ({
    delivery,
    types: unrecordedTypes(delivery.event, recorded),
  }));
  const without = (type: EventType) =>
    runIdsOf(unrecorded.flatMap(({ delivery, types }) => (types.includes(type) ? [delivery] : [])));
  const [withoutStarted, withoutErrored] = [without('job.run.started'), without('job.run.errored')];
  if (withoutStarted.length + withoutErrored.length === 0) return { recorded, undispatched: [] };
  const events = await record.loadUndispatchedOfRuns({ ...lane, withoutStarted, withoutErrored });
  if (events === null) return { recorded, undispatched: [] };
  // An event that was dispatched between the two statements is now a delivery.
  const runIds = [...new Set([...withoutStarted, ...withoutErrored])];
  const reloaded = await record.loadRunDeliveries(lane, runIds);
  const others = recorded.filter(({ runId }) => !runIds.includes(runId));
  return { recorded: [...others, ...reloaded], undispatched: await matchingEvents(dispatcher, lane, events) };
}

function runIdsOf(deliveries: readonly Delivery[]): string[] {
  return [...new Set(deliveries.map(({ event }) => event.data.runId))];
}

/** Returns the events that match the subscription, which is reread if it has changed since it was cached. */
async function matchingEvents(
  { record }: Dispatcher,
  { subscriptionId, accountId }: LaneKey,
  events: readonly JobRunEvent[],
): Promise<JobRunEvent[]> {
  const [event] = events;
  let account = await record.accounts.get(accountId);
  if (!event || !account) return [];
  const { status } = await record.loadEventState({ event, version: account.version });
  if (status === 'outdated') {
    record.accounts.invalidate(account);
    account = await record.accounts.get(accountId);
  }
  return events.filter(
    (one) => account && matchSubscriptions(account, one).some(({ id }) => id === subscriptionId),
  );
}

/** Removes items that were set aside from those that deliveries wait for: no other item waits for them. */
async function withoutSetAside(
  { record }: Dispatcher,
  { accountId, subscriptionId }: LaneKey,
  ordered: readonly Delivery[],
  { recorded, undispatched }: Runs,
): Promise<Runs> {
  const predecessors = ordered.flatMap((delivery): Predecessor[] => {
    const predecessor = predecessorOf(delivery, recorded, undispatched);
    return predecessor === null ? [] : [predecessor];
  });
  if (predecessors.length === 0) return { recorded, undispatched };
  const eventIds = [...new Set(predecessors.map(({ eventId }) => eventId))];
  const setAside = await record.setAsideAmong({ accountId, subscriptionId, eventIds });
  return {
    recorded: recorded.filter(({ eventId }) => !setAside.has(eventId)),
    undispatched: undispatched.filter(({ eventId }) => !setAside.has(eventId)),
  };
}
