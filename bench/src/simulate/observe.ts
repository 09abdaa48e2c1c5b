import { percentile } from '../measure/timing.ts';
import { Simulation } from './engine.ts';
import { Lanes } from './lanes.ts';
import { Service, type Setup } from './service.ts';
import type { ServiceTimes } from './times.ts';

/** The load: over REST or directly to the queue; by a rate, by a number of callers in a closed loop, or all at once. */
export type Load =
  | { kind: 'open'; via: 'rest' | 'queue'; ratePerSecond: number; arrivals: 'even' | 'poisson' }
  | {
      kind: 'burst';
      via: 'rest' | 'queue';
      ratePerSecond: number;
      times: number;
      forMs: number;
      everyMs: number;
    }
  | { kind: 'callers'; callers: number }
  | { kind: 'prefilled'; events: number };

/** Results of a simulation. Latencies are those of deliveries that succeed at their first attempt. */
export interface Observation {
  ratePerSecond: number;
  acceptedPerSecond: number;
  acceptedP50Ms: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** Utilization of each part: 1 is full. */
  use: Record<Part, number>;
  /** CPU of each part per delivery; of management per call. */
  cpuMicros: Record<'management' | 'dispatcher' | 'redis' | 'postgres', number>;
  fullFirst: Part;
}

export const PARTS = [
  'management',
  'dispatcher',
  'slots for events',
  'Redis',
  'PostgreSQL',
  'its log',
  'the machine',
] as const;
export type Part = (typeof PARTS)[number];

export interface ObserveOptions {
  times: ServiceTimes;
  setup: Setup;
  load: Load;
  seed?: number;
  warmUpMs?: number;
  /** Duration of the measurement, after the warm-up. */
  durationMs: number;
}

/** Simulates the service for a while and returns the results; for a prefilled queue, those from 15 % to 90 % of it. */
export function observe({
  times,
  setup,
  load,
  seed = 1,
  warmUpMs = 1_000,
  durationMs,
}: ObserveOptions): Observation {
  const simulation = new Simulation(seed);
  const lanes: Lanes = new Lanes(setup.endpoints, () => service);
  const service: Service = new Service(simulation, times, setup, lanes);
  const latenciesMs: number[] = [];
  const acceptedMs: number[] = [];
  let isMeasuring = false;
  const [fromMs, toMs] = load.kind === 'prefilled' ? [0, 1] : [warmUpMs, warmUpMs + durationMs];
  service.onDelivered = ({ count, intendedMs, attempts }, atMs) => {
    // Retried deliveries are excluded, because their delay is intended.
    if (attempts > 1 || intendedMs < fromMs || intendedMs >= toMs) return;
    for (let repetition = 0; repetition < count; repetition += 1) latenciesMs.push(atMs - intendedMs);
  };
  service.onAccepted = (_count, tookMs) => {
    if (isMeasuring) acceptedMs.push(tookMs);
  };
  if (load.kind === 'prefilled') {
    startLoad(service, load);
    const deliveryCount = load.events * setup.deliveriesPerEvent;
    runUntilDelivered(service, deliveryCount * 0.15, durationMs);
    const before = takeReading(service);
    runUntilDelivered(service, deliveryCount * 0.9, durationMs);
    return createObservation(service, before, { latenciesMs, acceptedMs });
  }
  const loading = startLoad(service, load);
  simulation.runUntil(warmUpMs);
  const before = takeReading(service);
  isMeasuring = true;
  simulation.runUntil(warmUpMs + durationMs);
  isMeasuring = false;
  const observation = createObservation(service, before, { latenciesMs, acceptedMs });
  // Events that were due during the measurement count when they arrive, however late.
  loading.stop();
  if (setup.dispatchers > 0) simulation.runUntil(simulation.nowMs + LATE_MAX_MS);
  return { ...observation, ...summarizeLatency(latenciesMs) };
}

const LATE_MAX_MS = 30_000;

function summarizeLatency(latenciesMs: number[]): Pick<Observation, 'p50Ms' | 'p99Ms' | 'maxMs'> {
  const sorted = Float64Array.from(latenciesMs).sort();
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), maxMs: percentile(sorted, 1) };
}

function runUntilDelivered(service: Service, count: number, stepMs: number): void {
  const { simulation } = service;
  const endMs = simulation.nowMs + stepMs;
  while (service.delivered < count && simulation.nowMs < endMs) simulation.runUntil(simulation.nowMs + 5);
}

/** @param count number of events that each simulated event represents */
export function startLoad(service: Service, load: Load, count = 1): { stop(): void } {
  const { simulation } = service;
  let isStopped = false;
  const send = (via: 'rest' | 'queue') => {
    if (via === 'rest') service.call(count);
    else toPublisher(service, count);
  };
  if (load.kind === 'prefilled') {
    const events = Array.from({ length: load.events }, () => ({ count: 1, intendedMs: 0 }));
    service.publish(events);
  } else if (load.kind === 'callers') {
    const call = (): void => {
      if (!isStopped) service.call(1, call);
    };
    for (let index = 0; index < load.callers; index += 1) call();
  } else if (load.kind === 'open') {
    const gapMs = (1_000 * count) / load.ratePerSecond;
    const next = (): void => {
      if (isStopped) return;
      send(load.via);
      simulation.after(load.arrivals === 'even' ? gapMs : simulation.random.exponential(gapMs), next);
    };
    simulation.after(gapMs * simulation.random.next(), next);
  } else {
    const { ratePerSecond, times, forMs, everyMs } = load;
    const next = (): void => {
      if (isStopped) return;
      send(load.via);
      const isBurst = simulation.nowMs % everyMs >= everyMs - forMs;
      const rate = ratePerSecond * (isBurst ? times : 1);
      simulation.after(simulation.random.exponential((1_000 * count) / rate), next);
    };
    next();
  }
  return {
    stop: () => {
      isStopped = true;
    },
  };
}

/** Poll interval of the publisher, which publishes all events that became due since its last poll in one call. */
const PUBLISHER_POLL_MS = 1;
const pendingEvents = new WeakMap<Service, { count: number; intendedMs: number }[]>();

function toPublisher(service: Service, count: number): void {
  const { simulation } = service;
  const event = { count, intendedMs: simulation.nowMs };
  const pending = pendingEvents.get(service);
  if (pending !== undefined) {
    pending.push(event);
    return;
  }
  pendingEvents.set(service, [event]);
  simulation.after(PUBLISHER_POLL_MS * simulation.random.next(), () => {
    const events = pendingEvents.get(service) ?? [];
    pendingEvents.delete(service);
    service.runOnLoadThread('loader', service.times.machine.publisherMicros * events.length, () =>
      service.publish(events),
    );
  });
}

interface Reading {
  atMs: number;
  delivered: number;
  management: { cpu: number; busy: number };
  pods: { cpu: number; busy: number; slots: number };
  redis: number[];
  database: number;
  log: number;
  machine: number;
}

function takeReading(service: Service): Reading {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  return {
    atMs: service.simulation.nowMs,
    delivered: service.delivered,
    management: { cpu: service.managementCpuMs, busy: service.managementBusyMs },
    pods: {
      cpu: sum(service.pods.map(({ thread }) => thread.cpuMs)),
      busy: sum(service.pods.map(({ thread }) => thread.busyMs)),
      slots: sum(service.pods.map(({ slotsUsedMs }) => slotsUsedMs)),
    },
    redis: service.redis.map(({ busyMs }) => busyMs),
    database: service.database.cpuMs,
    log: service.log.busyMs,
    machine: service.machine?.busyMs ?? 0,
  };
}

function createObservation(
  service: Service,
  before: Reading,
  { latenciesMs, acceptedMs }: { latenciesMs: number[]; acceptedMs: number[] },
): Observation {
  const after = takeReading(service);
  const { setup, times, pods } = service;
  const ms = after.atMs - before.atMs;
  const delivered = after.delivered - before.delivered;
  const idleRedis = (times.redis.idlePollsPerSecond * times.redis.pollMicros) / 1e6;
  const redis = after.redis.map((busy, index) => (busy - (before.redis[index] ?? 0)) / ms);
  const polled = (pods.length * setup.shards * idleRedis) / setup.redisNodes;
  const use: Record<Part, number> = {
    management: (after.management.busy - before.management.busy) / ms / Math.max(1, setup.management),
    dispatcher: (after.pods.busy - before.pods.busy) / ms / Math.max(1, pods.length),
    'slots for events': (after.pods.slots - before.pods.slots) / ms / Math.max(1, pods.length),
    Redis: Math.max(...redis) + polled,
    PostgreSQL: (after.database - before.database) / ms / service.databaseCores.count,
    'its log': (after.log - before.log) / ms,
    'the machine':
      service.machine === null ? 0 : (after.machine - before.machine) / ms / service.machine.count,
  };
  const micros = (cpuMs: number, of = delivered) => (of === 0 ? 0 : (cpuMs * 1_000) / of);
  acceptedMs.sort((a, b) => a - b);
  return {
    ratePerSecond: (delivered * 1_000) / ms,
    acceptedPerSecond: (acceptedMs.length * 1_000) / ms,
    acceptedP50Ms: percentile(acceptedMs, 0.5),
    ...summarizeLatency(latenciesMs),
    use,
    cpuMicros: {
      management: micros(after.management.cpu - before.management.cpu, delivered || acceptedMs.length),
      dispatcher: micros(after.pods.cpu - before.pods.cpu),
      redis: micros(redis.reduce((sum, share) => sum + share * ms, 0)),
      postgres: micros(after.database - before.database, delivered || acceptedMs.length),
    },
    fullFirst: PARTS.reduce((first, part) => (use[part] > use[first] ? part : first)),
  };
}
