import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { COUNTING, walPosition, walSince, withCosts } from '../measure/costs.ts';
import { stored } from '../measure/ledger.ts';
import type { OpenLoop } from '../programs/reports.ts';
import { inRunnersWorld, type RunnersWorld, untilDrained, withReporter } from '../world/runners.ts';
import type { QueueName } from '../world/world.ts';
import { type BareExpress, withBareExpress } from './bare-express.ts';
import { least } from './least.ts';
import { accepted, closedLoop, delivered, memory, reporterSettings } from './reported.ts';
import { beside, besideRaw, meanRate } from './throughput.ts';

/** Waits until a service's work at its start is done. */
const START_MS = 3_000;
/** Waits until V8 has collected the garbage of the start, which it does when a process has been idle for a while. */
const REST_MS = 30_000;
const RATES = [50, 100, 300, 1_000];
/** Rate of the calls whose costs are counted: high enough that work done once per second is negligible. */
const COUNTED_RATE = 100;

/**
 * Measures a job runner that reports over REST, from the time when a call is due to the arrival of its event at the
 * endpoint. Each call is one event with one subscription.
 */
export async function rest(
  bench: Bench,
  queues: readonly QueueName[] = ['redis', 'postgres'],
): Promise<ScenarioResult> {
  return await withReporter((reporter) =>
    withBareExpress(bench, reporter, async (bare) => {
      const rows = [...bare.rows, ...(await least(bench, reporter))];
      for (const queue of queues) {
        rows.push(
          ...(await inRunnersWorld(bench, reporter, queue, {}, (world) => restRows(bench, world, bare))),
        );
        rows.push(
          await inRunnersWorld(bench, reporter, queue, { postgresSettings: COUNTING }, (world) =>
            countedRow(bench, world),
          ),
        );
      }
      return { name: 'rest', rows };
    }),
  );
}

async function restRows(bench: Bench, rest: RunnersWorld, bare: BareExpress): Promise<Row[]> {
  const { world, suffix } = rest;
  const named = (name: string) => `${name}${suffix}`;
  await world.setDispatchers(1);
  const inMemory = async () => ({ figures: memory(world), balance: stored(0, 0) });
  await wait(START_MS);
  const rows = [await measureCase(bench, named('after the start'), inMemory, 1)];
  await wait(bench.isQuick ? 0 : REST_MS);
  rows.push(await measureCase(bench, named('idle'), inMemory, 1));
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
  const fastest = () => delivered(rest, closedLoop(rest, bench.runMs), 'run');
  rows.push(
    await measureCase(bench, named('maximum rate'), () =>
      besideExpress(bare, () => besideRaw(bench, fastest)),
    ),
  );
  for (const ratePerSecond of RATES) {
    rows.push(
      await measureCase(bench, named(`${ratePerSecond}/s`), async () => {
        const loop: OpenLoop = { ...reporterSettings(rest, bench.runMs), ratePerSecond };
        const rawP99Ms = await bare.p99MsBeside(ratePerSecond);
        const { figures, balance: ledger } = await delivered(rest, loop, 'openLoop');
        const over = rawP99Ms === undefined ? {} : { p99OverRaw: (figures.p99Ms as number) / rawP99Ms };
        return { figures: { ...figures, ratePerSecond, ...over }, balance: ledger };
      }),
    );
  }
  return rows;
}

/** Adds the ratio to the number of calls that bare Express answers just before and just after. */
async function besideExpress(bare: BareExpress, measure: () => Promise<Measured>): Promise<Measured> {
  const [{ figures, balance: ledger }, before, after] = await beside(bare.rateBeside, measure);
  const overExpress = (figures.ratePerSecond as number) / meanRate(before, after);
  return { figures: { ...figures, overExpress }, balance: ledger };
}

/**
 * Counts the costs of an event at the stores at a low rate. The measurement begins with a checkpoint, after which every
 * page that is written has been written once before counting starts, so that the full-page images of a checkpoint are
 * reported separately, per checkpoint.
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
