import { type Pool, runEach } from '@runhook/database';
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
  deliveries: Pick<DeliveryQueue, 'putBackLanes'>;
  /** Called with the number of deliveries that expired, even if waking the lanes fails later. */
  onExpired?: (count: number) => void;
}

/** Creates the missing job of each lane with parked deliveries, and expires deliveries that are parked for too long. */
export async function lookAfterLanes(dependencies: LanesDependencies): Promise<LanesTurn> {
  const { pool, deliveries, onExpired } = dependencies;
  return await runEach<LanesTurn>({
    expired: async () => {
      const expired = await expireAllParked(pool);
      if (expired > 0) onExpired?.(expired);
      return expired;
    },
    waiting: () => wakeAllLanes(pool, deliveries),
  });
}

async function expireAllParked(pool: Pool): Promise<number> {
  const options = { maxSeconds: PARKED_MAX_SECONDS, limit: EXPIRED_PAGE_SIZE, reason: EXPIRED };
  let expired = 0;
  for (let page = 1; page > 0; expired += page) page = await expireParked(pool, options);
  return expired;
}

async function wakeAllLanes(pool: Pool, deliveries: LanesDependencies['deliveries']): Promise<number> {
  let waiting = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const lanes: WokenLane[] = await waitingLanes(pool, after, PAGE_SIZE);
    await deliveries.putBackLanes(lanes);
    waiting += lanes.length;
    after = lanes.length < PAGE_SIZE ? undefined : lanes.at(-1)?.subscriptionId;
  }
  return waiting;
}
