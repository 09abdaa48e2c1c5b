import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { COUNTING_SETTINGS, walPosition, walSince, withCosts } from '../measure/costs.ts';
import { acceptedBalance } from '../measure/ledger.ts';
import type { OpenLoop } from '../programs/reports.ts';
import { type RunnersWorld, waitUntilDrained, withReporter, withRunnersWorld } from '../world/runners.ts';
import type { QueueName } from '../world/world.ts';
import { type BareExpress, withBareExpress } from './bare-express.ts';
import { minimal } from './minimal.ts';
import {
  createClosedLoop,
  createReporterSettings,
  measureAccepted,
  measureDelivered,
  memoryFigures,
} from './reported.ts';
import { meanRate, measureWithReference, withRawReference } from './throughput.ts';

/** Wait until a service's work at its start is done. */
const START_MS = 3_000;
/** Wait until V8 has collected the garbage of the start, which it does when a process has been idle for a while. */
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
      const rows = [...bare.rows, ...(await minimal(bench, reporter))];
      for (const queue of queues) {
        rows.push(
          ...(await withRunnersWorld(bench, reporter, queue, {}, (world) => restRows(bench, world, bare))),
        );
        rows.push(
          await withRunnersWorld(bench, reporter, queue, { postgresSettings: COUNTING_SETTINGS }, (world) =>
            measureCountedRow(bench, world),
          ),
        );
      }
      return { name: 'rest', rows };
    }),
  );
}

async function restRows(bench: Bench, rest: RunnersWorld, bare: BareExpress): Promise<Row[]> {
  const { world, suffix } = rest;
  const withSuffix = (name: string) => `${name}${suffix}`;
  await world.setDispatchers(1);
  const measureMemory = async () => ({ figures: memoryFigures(world), balance: acceptedBalance(0, 0) });
  await wait(START_MS);
  const rows = [await measureCase(bench, withSuffix('after the start'), measureMemory, 1)];
  await wait(bench.isQuick ? 0 : REST_MS);
  rows.push(await measureCase(bench, withSuffix('idle'), measureMemory, 1));
  await world.setDispatchers(0);
  rows.push(
    await measureCase(bench, withSuffix('accepted, no dispatcher'), () =>
      withExpressReference(bare, () => measureAccepted(bench, rest)),
    ),
  );
  await world.setDispatchers(1);
  await waitUntilDrained(rest);
  bench.progress(withSuffix('warming up'));
  await measureDelivered(rest, createClosedLoop(rest, Math.min(2_000, bench.runMs)), 'run');
  const fastest = () => measureDelivered(rest, createClosedLoop(rest, bench.runMs), 'run');
  rows.push(
    await measureCase(bench, withSuffix('maximum rate'), () =>
      withExpressReference(bare, () => withRawReference(bench, fastest)),
    ),
  );
  for (const ratePerSecond of RATES) {
    rows.push(
      await measureCase(bench, withSuffix(`${ratePerSecond}/s`), async () => {
        const loop: OpenLoop = { ...createReporterSettings(rest, bench.runMs), ratePerSecond };
        const rawP99Ms = await bare.measureReferenceP99Ms(ratePerSecond);
        const { figures, balance: ledger } = await measureDelivered(rest, loop, 'openLoop');
        const ratios = rawP99Ms === undefined ? {} : { p99RatioToRaw: (figures.p99Ms as number) / rawP99Ms };
        return { figures: { ...figures, ratePerSecond, ...ratios }, balance: ledger };
      }),
    );
  }
  return rows;
}

/** Adds the ratio to the number of calls that bare Express responds to just before and just after. */
async function withExpressReference(bare: BareExpress, measure: () => Promise<Measured>): Promise<Measured> {
  const [{ figures, balance: ledger }, before, after] = await measureWithReference(
    bare.measureReferenceRate,
    measure,
  );
  const ratioToExpress = (figures.ratePerSecond as number) / meanRate(before, after);
  return { figures: { ...figures, ratioToExpress }, balance: ledger };
}

/**
 * Counts the costs of an event at the stores at a low rate. The measurement begins with a checkpoint, after which every
 * page that is written has been written once before counting starts, so that the full-page images of a checkpoint are
 * reported separately, per checkpoint.
 */
async function measureCountedRow(bench: Bench, rest: RunnersWorld): Promise<Row> {
  const { world, suffix } = rest;
  await world.setDispatchers(1);
  const loop: OpenLoop = { ...createReporterSettings(rest, bench.runMs), ratePerSecond: COUNTED_RATE };
  const warmUp = { ...loop, durationMs: Math.min(2_000, bench.runMs) };
  await measureDelivered(rest, warmUp, 'openLoop');
  const checkpointAt = await walPosition(world);
  await world.database.pool.query('CHECKPOINT');
  await measureDelivered(rest, warmUp, 'openLoop');
  return await measureCase(bench, `counted, ${COUNTED_RATE}/s${suffix}`, async () => {
    const { result, costs } = await withCosts(world, async () => {
      const measured = await measureDelivered(rest, loop, 'openLoop');
      await waitUntilDrained(rest);
      return { result: measured, events: measured.balance.delivered };
    });
    const { imageBytes } = await walSince(world, checkpointAt);
    const figures = { ratePerSecond: COUNTED_RATE, ...costs, walImagesKb: imageBytes / 1e3 };
    return { figures, balance: result.balance };
  });
}
