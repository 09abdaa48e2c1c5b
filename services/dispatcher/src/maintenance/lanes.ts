import { type Pool, runEach } from '@runhook/database';
import type { DeliveryQueue, WokenLane } from '@runhook/queue';
import { lanesWithDeferred } from '../record/deferred.ts';
import { expireDeferred } from '../record/deferred-expiry.ts';
import type { Quarantine } from '../record/quarantine.ts';
import { releaseEnded } from './waiting.ts';

const PAGE_SIZE = 500;
const EXPIRED_PAGE_SIZE = 1_000;
/** Time in seconds after which a deferred delivery expires (docs/contract.md#lanes). */
const DEFERRED_MAX_SECONDS = 86_400;
const EXPIRED_REASON =
  'It could not be attempted for 24 hours: its subscription had too many pending deliveries, or kept failing.';

export interface LanesPassResult {
  /** Number of subscriptions with deferred deliveries; each of them has its job now. */
  waiting: number;
  expired: number;
  /** Number of deliveries that waited for an earlier one of their run without need. */
  released: number;
}

export interface LanesDependencies {
  pool: Pool;
  deliveries: Pick<DeliveryQueue, 'requeueLanes'>;
  quarantine: Pick<Quarantine, 'setAside'>;
  /** Called with the number of deliveries that expired, even if waking the lanes fails later. */
  onExpired?: (count: number) => void;
}

/**
 * Expires deliveries that are deferred for too long, releases those that wait for a delivery that has ended, and creates
 * the missing job of each lane with deferred deliveries.
 */
export async function reconcileLanes(dependencies: LanesDependencies): Promise<LanesPassResult> {
  const { pool, deliveries, quarantine, onExpired } = dependencies;
  const expiry = { maxSeconds: DEFERRED_MAX_SECONDS, limit: EXPIRED_PAGE_SIZE, reason: EXPIRED_REASON };
  return await runEach<LanesPassResult>({
    expired: async () => {
      const { expired, errors } = await expireDeferred({ pool, quarantine, ...expiry });
      if (expired > 0) onExpired?.(expired);
      if (errors.length > 0)
        throw new AggregateError(errors, `Deferred deliveries of ${errors.length} accounts did not expire.`);
      return expired;
    },
    released: () => releaseEnded({ pool, quarantine }),
    waiting: () => wakeAllLanes(pool, deliveries),
  });
}

async function wakeAllLanes(pool: Pool, deliveries: LanesDependencies['deliveries']): Promise<number> {
  let waiting = 0;
  for (let after: string | undefined = ''; after !== undefined; ) {
    const lanes: WokenLane[] = await lanesWithDeferred(pool, after, PAGE_SIZE);
    await deliveries.requeueLanes(lanes);
    waiting += lanes.length;
    after = lanes.length < PAGE_SIZE ? undefined : lanes.at(-1)?.subscriptionId;
  }
  return waiting;
}
