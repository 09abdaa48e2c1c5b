import { setTimeout as wait } from 'node:timers/promises';
import type { Measured, RawReference } from '../bench.ts';
import { balance, type ToldOtherwise } from '../measure/ledger.ts';
import { spreadOf } from '../measure/percentiles.ts';
import type { Published } from '../programs/publisher.ts';
import { takeArrivals } from '../world/arrivals.ts';
import { settle, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { cpuFigures } from './drain.ts';

const ARRIVAL_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** Publishes by a fixed schedule, and measures from each event's intended time, so that no stall can hide. */
export async function openLoop(
  world: World,
  workload: Workload,
  options: { ratePerSecond: number; durationMs: number; raw: RawReference; toldOtherwise?: ToldOtherwise },
): Promise<Measured> {
  const { ratePerSecond, durationMs, raw } = options;
  await takeArrivals(world);
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
  await untilArrived(world, expected.length);
  await settle(world, workload);
  const result = balance(expected, await takeArrivals(world), options.toldOtherwise);
  const { p50, p99, max } = spreadOf(result.latenciesMs);
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

async function untilArrived(world: World, count: number): Promise<void> {
  for (const deadline = Date.now() + ARRIVAL_TIMEOUT_MS; Date.now() < deadline; await wait(POLL_MS)) {
    if ((await world.receiver.call<number>('count')) >= count) return;
  }
}
