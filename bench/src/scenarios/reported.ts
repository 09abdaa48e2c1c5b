import type { Bench, Figures, Measured } from '../bench.ts';
import { memoryMb } from '../measure/costs.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { acceptedBalance, balance } from '../measure/ledger.ts';
import { sharedNowMs, spreadOf } from '../measure/timing.ts';
import {
  type ClosedLoop,
  callsOf,
  type OpenLoop,
  type Reported,
  type ReporterSettings,
} from '../programs/reports.ts';
import { countEvents, listExpected, type RunnersWorld } from '../world/runners.ts';
import { takeArrivals } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { CALLERS } from './bare-express.ts';
import { waitForArrivals } from './latency.ts';

/** Returns a closed loop of {@link CALLERS} callers, each of which sends its next call when it has a response. */
export function createClosedLoop(rest: RunnersWorld, durationMs: number): ClosedLoop {
  return { ...createReporterSettings(rest, durationMs), callers: CALLERS };
}

export function createReporterSettings(
  { world, runners }: RunnersWorld,
  durationMs: number,
): ReporterSettings {
  return { url: world.management?.url ?? '', runners, durationMs };
}

/** Measures how fast calls are accepted while no dispatcher runs. Each accepted event must be stored. */
export async function measureAccepted(bench: Bench, rest: RunnersWorld): Promise<Measured> {
  const { world, reporter } = rest;
  await reporter.call<Reported>('run', createClosedLoop(rest, Math.min(1_000, bench.runMs)));
  const storedBefore = await countEvents(rest);
  const before = world.readCpu();
  const { respondedAtMs, intendedMs, rejected, seconds } = await reporter.call<Reported>(
    'run',
    createClosedLoop(rest, bench.runMs),
  );
  const use = cpuBetween(before, world.readCpu());
  const count = respondedAtMs.length;
  const { p50, p99 } = spreadOf(respondedAtMs.map((ms, index) => ms - (intendedMs[index] as number)));
  const missing = count - ((await countEvents(rest)) - storedBefore);
  return {
    figures: {
      ratePerSecond: count / seconds,
      responseP50Ms: p50,
      responseP99Ms: p99,
      managementCpuMicros: ((use?.groups.management ?? 0) * 1_000) / count,
      postgresCpuMicros: ((use?.groups.postgres ?? 0) * 1_000) / count,
      ...memoryFigures(world),
    },
    balance: acceptedBalance(count, rejected + missing),
  };
}

/** Reports, waits until each event has arrived, and returns the latencies and the CPU of each. */
export async function measureDelivered(
  rest: RunnersWorld,
  loop: ClosedLoop | OpenLoop,
  method: 'run' | 'openLoop',
): Promise<Measured> {
  const { world, reporter } = rest;
  await takeArrivals(world);
  const before = world.readCpu();
  const startMs = sharedNowMs();
  const reported = await reporter.call<Reported>(method, loop);
  await waitForArrivals(world, callsOf(reported).length);
  const use = cpuBetween(before, world.readCpu());
  const arrivals = await takeArrivals(world);
  const ledger = balance(await listExpected(rest, reported), arrivals);
  const { max: lastMs } = spreadOf(arrivals.timesMs);
  const { p50, p99, max } = spreadOf(ledger.latenciesMs);
  const micros = (group: string) => ((use?.groups[group] ?? 0) * 1_000) / ledger.delivered;
  const groups = ['management', 'dispatcher', 'redis', 'postgres'];
  return {
    figures: {
      ratePerSecond: ledger.delivered / ((lastMs - startMs) / 1_000),
      p50Ms: p50,
      p99Ms: p99,
      maxMs: max,
      cpuMicros: groups.reduce((sum, group) => sum + micros(group), 0),
      ...Object.fromEntries(groups.map((group) => [`${group}CpuMicros`, micros(group)])),
      ...memoryFigures(world),
    },
    balance: { ...ledger, missing: ledger.missing + reported.rejected },
  };
}

/** Returns the resident memory of management and of the first dispatcher. */
export function memoryFigures({ management, dispatchers }: World): Figures {
  const [dispatcher] = dispatchers;
  return {
    ...(management && { managementMb: memoryMb(management.pid) }),
    ...(dispatcher && { dispatcherMb: memoryMb(dispatcher.pid) }),
  };
}
