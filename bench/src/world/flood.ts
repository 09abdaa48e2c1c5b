import { createQueueBackend, openDeliveryQueue } from '@runhook/queue';
import { type SeededLane, seedDeferred } from '@runhook/testing';
import type { Expected } from '../measure/ledger.ts';
import { sharedNowMs } from '../measure/timing.ts';
import { createWorkload, type EndpointKind } from './workload.ts';
import type { World } from './world.ts';

/** A subscription with deliveries that were stored instead of published. */
export interface Lane extends SeededLane {
  path: string;
}

/** Age of the oldest seeded delivery. */
const SEEDED_MINUTES = 60;

/** Creates accounts with subscriptions at endpoints of this kind, and returns the lanes of the subscriptions. */
export async function seedLanes(world: World, kind: EndpointKind): Promise<Lane[]> {
  const { templates, subscriptionsByTemplate } = await createWorkload(world, [kind]);
  return templates.flatMap(({ accountId }, index) =>
    (subscriptionsByTemplate[index] ?? []).map(({ id, path }) => ({ accountId, subscriptionId: id, path })),
  );
}

export async function seedLane(world: World, behaviour: string): Promise<Lane> {
  const [lane] = await seedLanes(world, { behaviour, accounts: 1 });
  return lane as Lane;
}

/** Stores deferred deliveries of the last hour, as if the lanes had been closed; they have no queue jobs. */
export async function seedFlood(world: World, lanes: readonly Lane[], count: number): Promise<void> {
  if (count > 0) await seedDeferred(world.database.pool, { lanes, count, minutes: SEEDED_MINUTES });
}

/** Creates the jobs of the lanes, as the dispatcher does when it defers a delivery. */
export async function wakeLanes(world: World, lanes: readonly Lane[]): Promise<void> {
  const queue = openDeliveryQueue(createQueueBackend(world.queueUrl), () => undefined);
  try {
    await queue.wakeLanes(lanes);
  } finally {
    await queue.close();
  }
}

/** Returns the deliveries that must arrive once the endpoints respond. */
export async function listExpected(world: World, lanes: readonly Lane[]): Promise<Expected[]> {
  const intendedMs = sharedNowMs();
  const paths = new Map(lanes.map(({ subscriptionId, path }) => [subscriptionId, path]));
  const { rows } = await world.database.pool.query<{ event_id: string; subscription_id: string }>(
    'SELECT event_id, subscription_id FROM deliveries WHERE subscription_id = ANY($1)',
    [[...paths.keys()]],
  );
  return rows.map(({ event_id: eventId, subscription_id: id }) => ({
    eventId,
    path: paths.get(id) as string,
    intendedMs,
  }));
}
