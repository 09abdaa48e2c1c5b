import type { Pool } from '@runhook/database';
import type { DeliveryQueue, WokenLane } from '@runhook/queue';
import { expireParked, waitingLanes } from '../record/parked.ts';

const PAGE_SIZE = 500;
const EXPIRED_PAGE_SIZE = 1_000;
/** A day in a lane that does not move (docs/contract.md#lanes). */
const PARKED_MAX_SECONDS = 86_400;
const EXPIRED =
  'It could not be attempted for 24 hours: its subscription had too much waiting, or kept failing.';

/** What one look at the lanes found. */
export interface LanesTurn {
  /** Subscriptions with parked deliveries; each has its job now. */
  waiting: number;
  /** Deliveries given up. */
  expired: number;
}

export interface LanesDependencies {
  pool: Pool;
  deliveries: Pick<DeliveryQueue, 'wakeLanes'>;
}

/** Sees that each lane with parked deliveries has its job, whatever became of the queue, and gives up what is too old. */
export async function lookAfterLanes({ pool, deliveries }: LanesDependencies): Promise<LanesTurn> {
  let expired = 0;
  for (let page = 1; page > 0; expired += page) {
    const options = { maxSeconds: PARKED_MAX_SECONDS, limit: EXPIRED_PAGE_SIZE, reason: EXPIRED };
    page = await expireParked(pool, options);
  }
  let waiting = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const lanes: WokenLane[] = await waitingLanes(pool, after, PAGE_SIZE);
    await deliveries.wakeLanes(lanes);
    waiting += lanes.length;
    after = lanes.length < PAGE_SIZE ? undefined : lanes.at(-1)?.subscriptionId;
  }
  return { waiting, expired };
}
