import { type Load, type Observation, observe, type Part } from './observe.ts';
import { type Setup, USUAL } from './service.ts';
import type { ServiceTimes } from './times.ts';

export interface Sized {
  times: ServiceTimes;
  setup: Setup;
  load: { how: 'rest' | 'queue'; arrivals: 'even' | 'poisson' };
}

/** Of steady arrivals: long enough for batches and queues to settle, short enough for a whole plan in a second. */
const EVENTS = 3_000;
const WARM_UP_MS = 300;
/** The knee: where p99 leaves what it is at a tenth of that rate. */
const TIMES_OF_QUIET = 4;
const STEPS = 4;

export function observeAt({ times, setup, load }: Sized, ratePerSecond: number): Observation {
  const open: Load = { kind: 'open', ...load, ratePerSecond };
  const durationMs = Math.min(6_000, Math.max(300, (EVENTS * 1_000) / ratePerSecond));
  return observe({ times, setup, load: open, warmUpMs: WARM_UP_MS, durationMs });
}

export interface Knee {
  ratePerSecond: number;
  /** Of the parts, just beyond it. */
  fullFirst: Part;
  /** What Redis could do until it is full, going by its use at the knee, where jobs hold several events. */
  redisPerSecond: number;
}

/** The deliveries a second up to which p99 stays. */
export function kneeOf(sized: Sized): Knee {
  const { setup } = sized;
  const { deliveriesPerEvent } = setup;
  const quiet = observeAt(sized, 100);
  let low = 100;
  let high = ceilingOf(sized);
  let redisPerSecond = 0;
  let fullFirst: Part = observeAt(sized, high).fullFirst;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (low + high) / 2;
    const seen = observeAt(sized, middle);
    const isBeyond =
      seen.p99Ms > TIMES_OF_QUIET * quiet.p99Ms || seen.ratePerSecond < 0.95 * middle * deliveriesPerEvent;
    redisPerSecond = seen.ratePerSecond / seen.use.Redis;
    if (isBeyond) {
      high = middle;
      fullFirst = seen.fullFirst;
    } else low = middle;
  }
  return { ratePerSecond: low * deliveriesPerEvent, fullFirst, redisPerSecond };
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
