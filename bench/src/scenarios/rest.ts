import { setTimeout as wait } from 'node:timers/promises';
import {
  type Bench,
  type Figures,
  type Measured,
  measureCase,
  type Row,
  type ScenarioResult,
} from '../bench.ts';
import { memoryMb, walPosition, walSince, withCosts } from '../measure/costs.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { balance, stored } from '../measure/ledger.ts';
import { sharedNowMs, spreadOf } from '../measure/timing.ts';
import { startProgram } from '../programs/program.ts';
import {
  type ClosedLoop,
  callsOf,
  type OpenLoop,
  type Reported,
  type ReporterSettings,
} from '../programs/reports.ts';
import {
  countEvents,
  expectedOf,
  inRunnersWorld,
  type RunnersWorld,
  untilDrained,
} from '../world/runners.ts';
import { takeArrivals } from '../world/workload.ts';
import type { QueueName, World } from '../world/world.ts';
import { type BareExpress, CALLERS, withBareExpress } from './bare-express.ts';
import { untilArrived } from './latency.ts';
import { least } from './least.ts';
import { beside, besideRaw, meanRate } from './throughput.ts';

/** Until what a service does at its start is done. */
const START_MS = 3_000;
/** Until V8 has collected what was left of the start: it does so when a process has been quiet for a while. */
const REST_MS = 30_000;
const RATES = [50, 100, 300, 1_000];
/** Of the calls that are only counted: enough for whatever comes once a second to be small. */
const COUNTED_RATE = 100;

/**
 * The way of a job runner that reports over REST: from the moment a call is due to the arrival of its event at the
 * endpoint. Each call is one event with one subscription.
 */
export async function rest(
  bench: Bench,
  queues: readonly QueueName[] = ['redis', 'postgres'],
): Promise<ScenarioResult> {
  const reporter = startProgram('reporter');
  try {
    return await withBareExpress(bench, reporter, async (bare) => {
      const rows = [...bare.rows, ...(await least(bench, reporter))];
      for (const queue of queues) {
        rows.push(
          ...(await inRunnersWorld(bench, reporter, queue, {}, (world) => restRows(bench, world, bare))),
        );
        const counting = { postgresSettings: { shared_preload_libraries: 'pg_stat_statements' } };
        rows.push(
          await inRunnersWorld(bench, reporter, queue, counting, (world) => countedRow(bench, world)),
        );
      }
      return { name: 'rest', rows };
    });
  } finally {
    await reporter.stop();
  }
}

async function restRows(bench: Bench, rest: RunnersWorld, bare: BareExpress): Promise<Row[]> {
  const { world, suffix } = rest;
  const named = (name: string) => `${name}${suffix}`;
  await world.setDispatchers(1);
  const inMemory = async () => ({ figures: memory(world), balance: stored(0, 0) });
  await wait(START_MS);
  const rows = [await measureCase(bench, named('after the start'), inMemory, 1)];
  await wait(bench.isQuick ? 0 : REST_MS);
  rows.push(await measureCase(bench, named('at rest'), inMemory, 1));
  await world.setDispatchers(0);
  rows.push(
    await measureCase(bench, named('accepted, no dispatcher'), () =>
      besideExpress(bare, () => accepted(bench, rest)),
    ),
  );
  await world.setDispatchers(1);
  await untilDrained(rest);
  bench.progress(named('warming up'));
  await delivered(rest, closedLoop(rest, Math.min(2_000, bench.runMs)), 'run');
  const fastest = await measureCase(bench, named('as fast as it goes'), () =>
    besideExpress(bare, () => besideRaw(bench, () => delivered(rest, closedLoop(rest, bench.runMs), 'run'))),
  );
  rows.push(fastest);
  for (const ratePerSecond of RATES) {
    rows.push(
      await measureCase(bench, named(`${ratePerSecond}/s`), async () => {
        const loop: OpenLoop = { ...reporterSettings(rest, bench.runMs), ratePerSecond };
        const rawP99Ms = await bare.p99MsBeside(ratePerSecond);
        const { figures, balance: ledger } = await delivered(rest, loop, 'openLoop');
        const over = rawP99Ms === undefined ? {} : { p99OverRaw: (figures.p99Ms as number) / rawP99Ms };
        const cpuOverFast = (figures.cpuMicros as number) / (fastest.figures.cpuMicros as number);
        return { figures: { ...figures, ratePerSecond, ...over, cpuOverFast }, balance: ledger };
      }),
    );
  }
  return rows;
}

/** With the ratio to how many calls bare Express answers just before and just after. */
async function besideExpress(bare: BareExpress, measure: () => Promise<Measured>): Promise<Measured> {
  const [{ figures, balance: ledger }, before, after] = await beside(bare.rateBeside, measure);
  const overExpress = (figures.ratePerSecond as number) / meanRate(before, after);
  return { figures: { ...figures, overExpress }, balance: ledger };
}

function closedLoop(rest: RunnersWorld, durationMs: number): ClosedLoop {
  return { ...reporterSettings(rest, durationMs), callers: CALLERS };
}

function reporterSettings({ world, runners }: RunnersWorld, durationMs: number): ReporterSettings {
  return { url: world.management?.url ?? '', runners, durationMs };
}

/** How fast calls are answered while nobody delivers. What is accepted must be stored. */
async function accepted(bench: Bench, rest: RunnersWorld): Promise<Measured> {
  const { world, reporter } = rest;
  await reporter.call<Reported>('run', closedLoop(rest, Math.min(1_000, bench.runMs)));
  const storedBefore = await countEvents(rest);
  const before = world.readCpu();
  const { answeredMs, intendedMs, refused, seconds } = await reporter.call<Reported>(
    'run',
    closedLoop(rest, bench.runMs),
  );
  const use = cpuBetween(before, world.readCpu());
  const count = answeredMs.length;
  const { p50, p99 } = spreadOf(answeredMs.map((ms, index) => ms - (intendedMs[index] as number)));
  const missing = count - ((await countEvents(rest)) - storedBefore);
  return {
    figures: {
      ratePerSecond: count / seconds,
      answerP50Ms: p50,
      answerP99Ms: p99,
      managementCpuMicros: ((use?.groups.management ?? 0) * 1_000) / count,
      postgresCpuMicros: ((use?.groups.postgres ?? 0) * 1_000) / count,
      ...memory(world),
    },
    balance: stored(count, refused + missing),
  };
}

/** Reports, waits until each event is there, and says how long it took and what it cost. */
async function delivered(
  rest: RunnersWorld,
  loop: ClosedLoop | OpenLoop,
  how: 'run' | 'openLoop',
): Promise<Measured> {
  const { world, reporter } = rest;
  await takeArrivals(world);
  const before = world.readCpu();
  const startMs = sharedNowMs();
  const reported = await reporter.call<Reported>(how, loop);
  await untilArrived(world, callsOf(reported).length);
  const use = cpuBetween(before, world.readCpu());
  const arrivals = await takeArrivals(world);
  const ledger = balance(await expectedOf(rest, reported), arrivals);
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
      ...memory(world),
    },
    balance: { ...ledger, missing: ledger.missing + reported.refused },
  };
}

/**
 * What an event costs the stores at a low rate, counted by them. It begins with a checkpoint, and what is written at all has
 * been written again before anything is counted: the images of pages that a checkpoint brings with it are told as what
 * they are, so many for each checkpoint.
 */
async function countedRow(bench: Bench, rest: RunnersWorld): Promise<Row> {
  const { world, suffix } = rest;
  await world.setDispatchers(1);
  const loop: OpenLoop = { ...reporterSettings(rest, bench.runMs), ratePerSecond: COUNTED_RATE };
  const warmUp = { ...loop, durationMs: Math.min(2_000, bench.runMs) };
  await delivered(rest, warmUp, 'openLoop');
  const checkpointAt = await walPosition(world);
  await world.database.pool.query('CHECKPOINT');
  await delivered(rest, warmUp, 'openLoop');
  return await measureCase(bench, `counted, ${COUNTED_RATE}/s${suffix}`, async () => {
    const { result, costs } = await withCosts(world, async () => {
      const measured = await delivered(rest, loop, 'openLoop');
      await untilDrained(rest);
      return { result: measured, events: measured.balance.delivered };
    });
    const { imageBytes } = await walSince(world, checkpointAt);
    const figures = { ratePerSecond: COUNTED_RATE, ...costs, walImagesKb: imageBytes / 1e3 };
    return { figures, balance: result.balance };
  });
}

/** What the processes hold now. */
function memory({ management, dispatchers }: World): Figures {
  const [dispatcher] = dispatchers;
  return {
    ...(management && { managementMb: memoryMb(management.pid) }),
    ...(dispatcher && { dispatcherMb: memoryMb(dispatcher.pid) }),
  };
}
