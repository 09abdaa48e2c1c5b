import { type Load, type Observation, observe, type Part } from './observe.ts';
import { DEFAULT_SETUP, type Setup } from './service.ts';
import type { ServiceTimes } from './times.ts';

export interface Sized {
  times: ServiceTimes;
  setup: Setup;
  load: { via: 'rest' | 'queue'; arrivals: 'even' | 'poisson' };
}

/**
 * Events of steady arrivals: enough for batches and queues to settle, few enough for a complete plan within a second.
 */
const EVENTS = 3_000;
const WARM_UP_MS = 300;
/** The knee is the rate at which p99 exceeds this multiple of its value at a low rate. */
const QUIET_LATENCY_FACTOR = 4;
const STEPS = 4;

export function observeAt({ times, setup, load }: Sized, ratePerSecond: number): Observation {
  const open: Load = { kind: 'open', ...load, ratePerSecond };
  const durationMs = Math.min(6_000, Math.max(300, (EVENTS * 1_000) / ratePerSecond));
  return observe({ times, setup, load: open, warmUpMs: WARM_UP_MS, durationMs });
}

export interface Knee {
  ratePerSecond: number;
  /** The most utilized part just beyond the knee. */
  fullFirst: Part;
  /** Extrapolated maximum rate of Redis, based on its utilization at the knee, where jobs contain several events. */
  redisPerSecond: number;
}

/** Returns the highest deliveries per second with a stable p99. */
export function findKnee(sized: Sized): Knee {
  const { setup } = sized;
  const { deliveriesPerEvent } = setup;
  const quiet = observeAt(sized, 100);
  let low = 100;
  let high = estimateCeiling(sized);
  let redisPerSecond = 0;
  let fullFirst: Part = observeAt(sized, high).fullFirst;
  for (let step = 0; step < STEPS; step += 1) {
    const middle = (low + high) / 2;
    const observed = observeAt(sized, middle);
    const isBeyond =
      observed.p99Ms > QUIET_LATENCY_FACTOR * quiet.p99Ms ||
      observed.ratePerSecond < 0.95 * middle * deliveriesPerEvent;
    redisPerSecond = observed.ratePerSecond / observed.use.Redis;
    if (isBeyond) {
      high = middle;
      fullFirst = observed.fullFirst;
    } else low = middle;
  }
  return { ratePerSecond: low * deliveriesPerEvent, fullFirst, redisPerSecond };
}

/** Returns an upper bound: the rate if all processors only handled deliveries. */
function estimateCeiling({ times, setup, load }: Sized): number {
  const { jobMicros, eventMicros, deliveryMicros } = times.dispatcher;
  const microsPerEvent = jobMicros / 20 + eventMicros + deliveryMicros * setup.deliveriesPerEvent;
  const dispatchers = (setup.dispatchers * 1e6) / microsPerEvent;
  if (load.via === 'queue') return dispatchers * 1.2;
  return Math.min(dispatchers, (setup.management * 1e6) / times.management.callMicros) * 1.2;
}

/**
 * Returns the setup of one of `databases` equal parts: everything is divided by account, and the parts are independent.
 */
export function createSlice(setup: Partial<Setup>, databases: number): Setup {
  const ceilPart = { ...DEFAULT_SETUP, ...setup };
  const part = (count: number) => Math.max(1, Math.round(count / databases));
  return {
    ...ceilPart,
    dispatchers: part(ceilPart.dispatchers),
    management: part(ceilPart.management),
    shards: part(ceilPart.shards),
    redisNodes: part(ceilPart.redisNodes),
  };
}
