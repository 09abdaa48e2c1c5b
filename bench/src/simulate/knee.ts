import { type Load, type Observation, observe, type Part } from './observe.ts';
import { type Setup, USUAL } from './service.ts';
import type { ServiceTimes } from './times.ts';

export interface Sized {
  times: ServiceTimes;
  setup: Setup;
  load: { how: 'rest' | 'queue'; arrivals: 'even' | 'poisson' };
}

/** Of steady arrivals: long enough for batches and queues to settle, short enough for a whole plan in a second. */
const EVENTS = 6_000;
const WARM_UP_MS = 300;
/** The knee: where p99 leaves what it is at a tenth of that rate. */
const TIMES_OF_QUIET = 4;
const STEPS = 7;

export function observeAt(
  { times, setup, load }: Sized,
  ratePerSecond: number,
  events = EVENTS,
): Observation {
  const open: Load = { kind: 'open', ...load, ratePerSecond };
  const durationMs = Math.max(400, (events * 1_000) / ratePerSecond);
  return observe({ times, setup, load: open, warmUpMs: WARM_UP_MS, durationMs });
}

/** The deliveries a second up to which p99 stays, and which part is full there. */
export function kneeOf(sized: Sized): { ratePerSecond: number; fullFirst: Part } {
  const { deliveriesPerEvent } = sized.setup;
  const quiet = observeAt(sized, 100, 1_000);
  let low = 100;
  let high = ceilingOf(sized);
  let fullFirst: Part = observeAt(sized, high).fullFirst;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (low + high) / 2;
    const seen = observeAt(sized, middle);
    const isBeyond =
      seen.p99Ms > TIMES_OF_QUIET * quiet.p99Ms || seen.ratePerSecond < 0.95 * middle * deliveriesPerEvent;
    if (isBeyond) {
      high = middle;
      fullFirst = seen.fullFirst;
    } else low = middle;
  }
  return { ratePerSecond: low * deliveriesPerEvent, fullFirst };
}

/** More than all its processors could do if nothing but deliveries were done. */
function ceilingOf({ times, setup, load }: Sized): number {
  const { jobMicros, eventMicros, deliveryMicros } = times.dispatcher;
  const eachMicros = jobMicros / 20 + eventMicros + deliveryMicros * setup.deliveriesPerEvent;
  const dispatchers = (setup.dispatchers * 1e6) / eachMicros;
  if (load.how === 'queue') return dispatchers * 1.2;
  return Math.min(dispatchers, (setup.management * 1e6) / times.management.callMicros) * 1.2;
}

/** What one of `databases` equal parts has: everything is divided by account, and no part knows of another. */
export function sliceOf(setup: Partial<Setup>, databases: number): Setup {
  const whole = { ...USUAL, ...setup };
  const part = (count: number) => Math.max(1, Math.round(count / databases));
  return {
    ...whole,
    dispatchers: part(whole.dispatchers),
    management: part(whole.management),
    shards: part(whole.shards),
    redisNodes: part(whole.redisNodes),
  };
}
