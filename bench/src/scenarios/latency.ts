import { setTimeout as wait } from 'node:timers/promises';
import {
  type Bench,
  type Measured,
  measureCase,
  type RawReference,
  type Row,
  type ScenarioResult,
} from '../bench.ts';
import { type Arrivals, balance, type Expected } from '../measure/ledger.ts';
import { percentile, spreadOf } from '../measure/timing.ts';
import type { Published } from '../programs/publisher.ts';
import { createWorkload, settle, takeArrivals, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { cpuFigures, HEALTHY_ACCOUNTS, maxRows, warmUp } from './throughput.ts';

const SHARES_OF_RAW = [0.3, 0.5, 0.67];
const LOW_RATE = 100;

/**
 * Measures the time from an event's intended time to its arrival at the endpoint, at loads relative to the maximum of
 * raw got.
 */
export async function latency(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const loads = [
    { name: `${LOW_RATE} events/s`, ratePerSecond: LOW_RATE },
    ...SHARES_OF_RAW.map((share) => ({
      name: `${share} of raw got`,
      ratePerSecond: Math.round(share * bench.raw.ratePerSecond),
    })),
  ];
  return { name: 'latency', rows: await latencyRows(bench, world, loads) };
}

async function latencyRows(
  bench: Bench,
  world: World,
  loads: readonly { name: string; ratePerSecond: number }[],
): Promise<Row[]> {
  const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
  bench.progress('warming up');
  await warmUp(bench, world, workload);
  const rows: Row[] = [];
  for (const { name, ratePerSecond } of loads) {
    const load = { ratePerSecond, durationMs: bench.runMs, raw: bench.raw };
    rows.push(await measureCase(bench, name, () => openLoop(world, workload, load)));
  }
  return rows;
}

const DELAYS_MS = [5, 100, 1_000];
const SHARE_OF_RAW = 0.3;

/** Measures endpoints with slow responses, which must not delay deliveries to others. */
export async function far(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.sharedWorld();
  await world.setDispatchers(1);
  const rows: Row[] = [];
  for (const delayMs of DELAYS_MS) {
    const name = `response after ${delayMs} ms`;
    const workload = await createWorkload(world, [
      { behaviour: `after-${delayMs}`, accounts: HEALTHY_ACCOUNTS },
    ]);
    const load = {
      ratePerSecond: Math.round(SHARE_OF_RAW * bench.raw.ratePerSecond),
      durationMs: bench.runMs,
      raw: bench.raw,
    };
    bench.progress(`${name}, warming up`);
    await openLoop(world, workload, { ...load, durationMs: Math.min(bench.runMs, 2_000) });
    rows.push(await measureCase(bench, name, () => openLoop(world, workload, load)));
  }
  return { name: 'far', rows };
}

const SHARES_OF_MAX = [0.3, 0.5];

/** Measures the embedded default, with the queue in PostgreSQL, as `npm start` runs it. */
export async function postgresQueue(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('postgres');
  try {
    const max = await maxRows(bench, world, [1]);
    const maxRate = max[0]?.figures.ratePerSecond ?? 0;
    const loads = [
      { name: '100 events/s', ratePerSecond: 100 },
      { name: '200 events/s', ratePerSecond: 200 },
      ...SHARES_OF_MAX.map((share) => ({
        name: `${share} of the maximum`,
        ratePerSecond: Math.max(10, Math.round(share * maxRate)),
      })),
    ];
    const rows: Row[] = [...max, ...(await latencyRows(bench, world, loads))];
    return { name: 'postgres-queue', rows };
  } finally {
    await world.close();
  }
}

const ARRIVAL_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

export interface OpenLoopOptions {
  ratePerSecond: number;
  durationMs: number;
  raw: RawReference;
  /** Adds events to the queue before the schedule begins; they are part of the ledger but not of the latencies. */
  addBacklog?: () => Promise<{ workload: Workload; expected: Expected[] }>;
}

/**
 * Publishes by a fixed schedule, and measures from each event's intended time, so that stalls are visible (no
 * coordinated omission).
 */
export async function openLoop(
  world: World,
  workload: Workload,
  options: OpenLoopOptions,
): Promise<Measured> {
  const { ratePerSecond, durationMs, raw } = options;
  await takeArrivals(world);
  const backlog = await options.addBacklog?.();
  const cpuBefore = world.readCpu();
  const startMs = performance.now();
  const published = await world.publisher.call<Published>('openLoop', {
    ratePerSecond,
    durationMs,
    templates: workload.templates,
  });
  const expected = workload.expected(published);
  const cpuAfter = world.readCpu();
  const seconds = (performance.now() - startMs) / 1_000;
  const deliveredCount = await world.receiver.call<number>('count');
  const allExpected = [...expected, ...(backlog?.expected ?? [])];
  await waitForArrivals(world, allExpected.length);
  await settle(world, workload);
  if (backlog !== undefined) await settle(world, backlog.workload);
  const arrivals = await takeArrivals(world);
  const result = balance(allExpected, arrivals);
  const scheduledOnly =
    backlog === undefined ? result : balance(expected, filterArrivals(arrivals, expected));
  const { p50, p99, max } = spreadOf(scheduledOnly.latenciesMs);
  const lateP95Ms = percentile(arrivals.lateMs.sort(), 0.95);
  return {
    balance: result,
    figures: {
      ratePerSecond,
      p50Ms: p50,
      p99Ms: p99,
      maxMs: max,
      ...(arrivals.lateMs.length > 0 && { retryLateP95Ms: lateP95Ms, retries: arrivals.lateMs.length }),
      acceptedP99Ms: spreadOf(
        published.acceptedMs.map((ms, index) => ms - (published.intendedMs[index] as number)),
      ).p99,
      ...cpuFigures(cpuBefore, cpuAfter, deliveredCount, seconds, raw),
    },
  };
}

/** Returns the arrivals at the expected paths. */
function filterArrivals({ eventIds, paths, timesMs }: Arrivals, expected: readonly Expected[]): Arrivals {
  const expectedPaths = new Set(expected.map(({ path }) => path));
  const indexes = paths.flatMap((path, index) => (expectedPaths.has(path) ? [index] : []));
  return {
    eventIds: indexes.map((index) => eventIds[index] as string),
    paths: indexes.map((index) => paths[index] as string),
    timesMs: indexes.map((index) => timesMs[index] as number),
  };
}

/** Waits until the receiver has this number of requests, or until none has arrived for a while. */
export async function waitForArrivals(world: Pick<World, 'receiver'>, count: number): Promise<void> {
  let last = { arrived: -1, atMs: Date.now() };
  while (Date.now() - last.atMs < ARRIVAL_TIMEOUT_MS) {
    const arrived = await world.receiver.call<number>('count');
    if (arrived >= count) return;
    if (arrived > last.arrived) last = { arrived, atMs: Date.now() };
    await wait(POLL_MS);
  }
}
