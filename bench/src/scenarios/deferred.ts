import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { balance, type Expected } from '../measure/ledger.ts';
import { measureUsage } from '../measure/usage.ts';
import type { Change } from '../programs/receiver.ts';
import { type Lane, listExpected, seedFlood, seedLanes, wakeLanes } from '../world/flood.ts';
import { countDeliveries, createWorkload, takeArrivals, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { openLoop } from './latency.ts';
import { drainFigures, HEALTHY_ACCOUNTS, measureMiddle } from './throughput.ts';

const DEFERRED = 1_000_000;
const LANES = 100;
const QUICK = { deferred: 2_000, lanes: 10 };
/** Settings of a quick run, whose measurement takes one second. */
const QUICK_ENVIRONMENT = { RETRY_BASE_DELAY_MS: '500', DELIVERY_TIMEOUT_MS: '1000' };
const EVENTS_PER_SECOND = 500;
/** Minimum duration of the measurement: a shorter one would not show growth. */
const CONCURRENT_MS = 60_000;
const BASELINE_MS = 20_000;
const THIRDS = ['first third', 'second third', 'last third'];

/**
 * A million deliveries wait for a hundred unresponsive endpoints, half of which refuse connections, while healthy ones
 * are measured: first for `--seconds`, at least a minute, in which nothing may grow. Then the endpoints recover, and
 * all deliveries must arrive, the oldest of each lane first.
 */
export async function deferred(bench: Bench): Promise<ScenarioResult> {
  const environment = bench.isQuick ? QUICK_ENVIRONMENT : {};
  const world = await bench.openWorld(bench.queue, { environment });
  try {
    await world.setDispatchers(1);
    const healthy = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    const thirdMs = (bench.isQuick ? bench.runMs : Math.max(bench.runMs, CONCURRENT_MS)) / THIRDS.length;
    bench.progress('warming up');
    await steady(bench, world, healthy, Math.min(thirdMs, 5_000));
    const rows = [
      await measureCase(
        bench,
        'baseline',
        () => steady(bench, world, healthy, Math.min(thirdMs, BASELINE_MS)),
        1,
      ),
    ];

    const port = await world.receiver.call<number>('closedPort');
    const { lanes, expected } = await seedDeferredLanes(bench, world, port);
    await wakeLanes(world, lanes);
    for (const third of THIRDS) {
      rows.push(await measureCase(bench, third, () => steady(bench, world, healthy, thirdMs), 1));
    }

    await reopenEndpoints(world, port);
    const stallMs = 60_000 + 2 * THIRDS.length * thirdMs;
    rows.push(
      await measureCase(
        bench,
        'endpoints respond again',
        () => drainLanes(bench, world, lanes, expected, stallMs),
        1,
      ),
    );
    return { name: 'deferred', rows, notes: [createNote(rows, expected.length, lanes.length)] };
  } finally {
    await world.killDispatchers();
    await world.close();
  }
}

async function seedDeferredLanes(
  bench: Bench,
  world: World,
  port: number,
): Promise<{ lanes: Lane[]; expected: Expected[] }> {
  const accounts = (bench.isQuick ? QUICK.lanes : LANES) / 2;
  const lanes = [
    ...(await seedLanes(world, { behaviour: 'refused', accounts, port })),
    ...(await seedLanes(world, { behaviour: 'hanging', accounts })),
  ];
  const count = bench.stored ?? (bench.isQuick ? QUICK.deferred : DEFERRED);
  bench.progress(`storing ${count.toLocaleString('en-GB')} deliveries`);
  await seedFlood(world, lanes, count);
  return { lanes, expected: await listExpected(world, lanes) };
}

async function steady(bench: Bench, world: World, workload: Workload, durationMs: number): Promise<Measured> {
  const load = { ratePerSecond: EVENTS_PER_SECOND, durationMs, raw: bench.raw };
  const { result, usage } = await measureUsage(world, () => openLoop(world, workload, load));
  return { ...result, figures: { ...result.figures, ...usage.figures } };
}

/** Makes the endpoints respond. Requests without a response end at the sender's deadline and are retried. */
async function reopenEndpoints({ receiver }: World, port: number): Promise<void> {
  await receiver.call('openPort', port);
  const change: Change = { from: 'hanging', to: 'ok' };
  await receiver.call('change', change);
}

async function drainLanes(
  bench: Bench,
  world: World,
  lanes: readonly Lane[],
  expected: readonly Expected[],
  stallMs: number,
): Promise<Measured> {
  const startMs = performance.now();
  const reopenedAt = new Date();
  const ids = lanes.map(({ subscriptionId }) => subscriptionId);
  const { result: middle, usage } = await measureUsage(world, () =>
    measureMiddle(world, expected.length, stallMs),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const { failed } = await waitUntilSettled(world, ids);
  return {
    balance: balance(expected, await takeArrivals(world), { failed }),
    figures: {
      ...drainFigures(middle, bench.raw),
      ...usage.figures,
      seconds,
      ...(await measureOrder(world, ids, reopenedAt)),
    },
  };
}

const SETTLE_TIMEOUT_MS = 30_000;

/** Waits until arrived deliveries are recorded. */
async function waitUntilSettled(world: World, ids: readonly string[]) {
  for (const deadline = Date.now() + SETTLE_TIMEOUT_MS; ; await wait(500)) {
    const counts = await countDeliveries(world, ids);
    if (counts.pending === 0 || Date.now() > deadline) return counts;
  }
}

/**
 * Among a lane's deliveries that were first attempted after the recovery: the number that began after a younger one,
 * and the largest number of positions by which one was late. Attempts that began in the same millisecond have no order.
 */
const ORDER = `
  WITH started AS MATERIALIZED (
    SELECT d.created_at, a.started_at
    FROM deliveries d JOIN logged_attempts a ON a.day = d.day AND a.delivery_id = d.id AND a.number = 1
    WHERE d.subscription_id = $1 AND a.started_at >= $2
  ), ranked AS (
    SELECT created_at,
      max(created_at) OVER (ORDER BY started_at RANGE UNBOUNDED PRECEDING EXCLUDE GROUP) AS youngest_before,
      rank() OVER (ORDER BY started_at) - rank() OVER (ORDER BY created_at) AS positions_late
    FROM started
  )
  SELECT count(*) FILTER (WHERE created_at < youngest_before)::float8 AS "outOfOrder",
    coalesce(max(positions_late), 0)::float8 AS "positionsLateMax"
  FROM ranked`;

/** Queries one lane at a time, because a million rows would exceed the time limit of statements. */
async function measureOrder({ database }: World, ids: readonly string[], reopenedAt: Date) {
  const order = { outOfOrder: 0, positionsLateMax: 0 };
  for (const id of ids) {
    const { rows } = await database.pool.query<typeof order>(ORDER, [id, reopenedAt]);
    order.outOfOrder += rows[0]?.outOfOrder ?? Number.NaN;
    order.positionsLateMax = Math.max(order.positionsLateMax, rows[0]?.positionsLateMax ?? Number.NaN);
  }
  return order;
}

function createNote(rows: readonly Row[], count: number, lanes: number): string {
  const last = rows.at(-1)?.figures.seconds ?? Number.NaN;
  const formattedCount = count.toLocaleString('en-GB');
  return `${formattedCount} deliveries of ${lanes} webhooks; all were delivered ${last.toFixed(0)} s after the endpoints were back.`;
}
