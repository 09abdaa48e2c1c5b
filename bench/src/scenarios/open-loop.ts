import { setTimeout as wait } from 'node:timers/promises';
import type { Measured, RawReference } from '../bench.ts';
import { type Arrivals, balance, type Expected } from '../measure/ledger.ts';
import { spreadOf } from '../measure/percentiles.ts';
import type { Published } from '../programs/publisher.ts';
import { takeArrivals } from '../world/arrivals.ts';
import { settle, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { cpuFigures } from './drain.ts';

const ARRIVAL_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

export interface OpenLoopOptions {
  ratePerSecond: number;
  durationMs: number;
  raw: RawReference;
  /** Put in the queue just before the schedule begins: part of the ledger, not of the latencies. */
  before?: () => Promise<{ workload: Workload; expected: Expected[] }>;
}

/** Publishes by a fixed schedule, and measures from each event's intended time, so that no stall can hide. */
export async function openLoop(
  world: World,
  workload: Workload,
  options: OpenLoopOptions,
): Promise<Measured> {
  const { ratePerSecond, durationMs, raw } = options;
  await takeArrivals(world);
  const beside = await options.before?.();
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
  const deliveredMeanwhile = await world.receiver.call<number>('count');
  const all = [...expected, ...(beside?.expected ?? [])];
  await untilArrived(world, all.length);
  await settle(world, workload);
  if (beside !== undefined) await settle(world, beside.workload);
  const arrivals = await takeArrivals(world);
  const result = balance(all, arrivals);
  const own = beside === undefined ? result : balance(expected, arrivalsAt(arrivals, expected));
  const { p50, p99, max } = spreadOf(own.latenciesMs);
  return {
    balance: result,
    figures: {
      ratePerSecond,
      p50Ms: p50,
      p99Ms: p99,
      maxMs: max,
      acceptedP99Ms: spreadOf(
        published.acceptedMs.map((ms, index) => ms - (published.intendedMs[index] as number)),
      ).p99,
      ...cpuFigures(cpuBefore, cpuAfter, deliveredMeanwhile, seconds, raw),
    },
  };
}

/** Those of the paths that were expected. */
function arrivalsAt({ eventIds, paths, timesMs }: Arrivals, expected: readonly Expected[]): Arrivals {
  const wanted = new Set(expected.map(({ path }) => path));
  const indexes = paths.flatMap((path, index) => (wanted.has(path) ? [index] : []));
  return {
    eventIds: indexes.map((index) => eventIds[index] as string),
    paths: indexes.map((index) => paths[index] as string),
    timesMs: indexes.map((index) => timesMs[index] as number),
  };
}

/** Gives up when nothing has arrived for a while. */
async function untilArrived(world: World, count: number): Promise<void> {
  let last = { arrived: -1, atMs: Date.now() };
  while (Date.now() - last.atMs < ARRIVAL_TIMEOUT_MS) {
    const arrived = await world.receiver.call<number>('count');
    if (arrived >= count) return;
    if (arrived > last.arrived) last = { arrived, atMs: Date.now() };
    await wait(POLL_MS);
  }
}
