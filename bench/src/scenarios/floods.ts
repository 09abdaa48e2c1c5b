import { setTimeout as wait } from 'node:timers/promises';
import { type Bench, type Measured, measureCase, type Row, type ScenarioResult } from '../bench.ts';
import { balance } from '../measure/ledger.ts';
import { measureUsage } from '../measure/usage.ts';
import type { Published } from '../programs/publisher.ts';
import { seedFlood, seedLane, wakeLanes } from '../world/flood.ts';
import { createWorkload, mergeWorkloads, settle, takeArrivals, type Workload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { openLoop } from './latency.ts';
import { measureMiddle } from './throughput.ts';

const EVENTS_PER_SECOND = 100;
const WARM_UP_MS = 3_000;

/** Measures the effect of a flood in one account on other accounts, compared with the same endpoints without it. */
export async function floods(bench: Bench): Promise<ScenarioResult> {
  const rows = [...(await measureHangingPath(bench)), ...(await measureDeferredBacklog(bench))];
  for (const subscriptions of bench.isQuick ? [100] : [1_000, 5_000]) {
    rows.push(...(await measureClosedPort(bench, subscriptions)));
  }
  return { name: 'floods', rows };
}

const HANGING_EVENTS = 2_000;

/** Two accounts have endpoints on the same server; one path never responds. */
async function measureHangingPath(bench: Bench): Promise<Row[]> {
  return await withWorld(bench, {}, async (world) => {
    const address = '127.0.77.1';
    const healthy = await createWorkload(world, [{ behaviour: 'ok', accounts: 1, address }]);
    const hanging = await createWorkload(world, [{ behaviour: 'hanging', accounts: 1, address }]);
    await warmUp(bench, world, healthy);
    const baseline = await measureCase(bench, 'a path, baseline', () => steady(bench, world, healthy));
    const count = bench.isQuick ? 200 : HANGING_EVENTS;
    await world.publisher.call('prefill', { count, templates: hanging.templates });
    await waitUntilDeferred(world, count / 2);
    const concurrent = await measureCase(bench, 'a path while another one hangs', () =>
      steady(bench, world, healthy),
    );
    const both = mergeWorkloads(healthy, hanging);
    const withEvents = await measureCase(bench, 'a path while another one hangs and receives events', () =>
      steady(bench, world, both, 2 * EVENTS_PER_SECOND),
    );
    return [baseline, addRatios(baseline, concurrent), addRatios(baseline, withEvents)];
  });
}

const FLAKY_ENDPOINTS = 20;
const BURST_EVENTS = 6_000;

/**
 * Deliveries wait for an endpoint that never responds while other endpoints reject the first attempt of some events;
 * then a burst goes to an endpoint that takes 200 ms. Retries must be sent when the endpoint asks for them.
 */
async function measureDeferredBacklog(bench: Bench): Promise<Row[]> {
  return await withWorld(bench, { RETRY_BASE_DELAY_MS: '1000' }, async (world) => {
    const flaky = await createWorkload(world, [{ behaviour: 'flaky', accounts: FLAKY_ENDPOINTS }]);
    await warmUp(bench, world, flaky);
    const lane = await seedLane(world, 'hanging');
    const rows: Row[] = [];
    let waiting = 0;
    for (const count of bench.isQuick ? [0, 1_000] : [0, 1_000, 100_000]) {
      const name = `${count.toLocaleString('en-GB')} waiting`;
      bench.progress(`${name}, storing`);
      await seedFlood(world, [lane], count - waiting);
      await wakeLanes(world, count === 0 ? [] : [lane]);
      waiting = count;
      const row = await measureCase(bench, name, () => steady(bench, world, flaky));
      rows.push(row);
    }
    const slow = await createWorkload(world, [{ behaviour: 'after-200', accounts: 1 }]);
    rows.push(
      await measureCase(bench, 'a burst for an endpoint that takes 200 ms', () => burst(bench, world, slow)),
    );
    return rows;
  });
}

async function burst(bench: Bench, world: World, workload: Workload): Promise<Measured> {
  const count = bench.isQuick ? 300 : BURST_EVENTS;
  await takeArrivals(world);
  const startMs = performance.now();
  const { result: expected, usage } = await measureUsage(world, async () => {
    const { templates } = workload;
    const published = await world.publisher.call<Published>('prefill', { count, templates });
    await measureMiddle(world, count);
    await settle(world, workload);
    return workload.expected(published);
  });
  const seconds = (performance.now() - startMs) / 1_000;
  return {
    balance: balance(expected, await takeArrivals(world)),
    figures: {
      ...usage.figures,
      ratePerSecond: count / seconds,
      scriptCallsPerEvent: usage.scriptCalls / count,
    },
  };
}

const CLOSED_PORT_EVENTS_PER_SECOND = 4;

/**
 * An account sends each of its events to many subscriptions at a port that refuses connections. Measured after a
 * warm-up, when the dispatcher has detected the failures.
 */
async function measureClosedPort(bench: Bench, subscriptions: number): Promise<Row[]> {
  return await withWorld(bench, {}, async (world) => {
    const healthy = await createWorkload(world, [{ behaviour: 'ok', accounts: 1 }]);
    await warmUp(bench, world, healthy);
    const formattedCount = subscriptions.toLocaleString('en-GB');
    const name = `with ${formattedCount} subscriptions to a refused port`;
    const baseline = await measureCase(bench, `${name}: baseline`, () => steady(bench, world, healthy));
    const port = await world.receiver.call<number>('closedPort');
    bench.progress(`${name}, storing`);
    const flood = await createWorkload(world, [
      {
        behaviour: 'hanging',
        accounts: 1,
        subscriptionsPerAccount: subscriptions,
        address: '127.0.78.1',
        port,
      },
    ]);
    const { accountId } = flood.templates[0] as { accountId: number };
    const beginFlood = () =>
      world.publisher.call('openLoop', {
        ratePerSecond: CLOSED_PORT_EVENTS_PER_SECOND,
        durationMs: bench.runMs,
        templates: flood.templates,
      });
    bench.progress(`${name}, its first seconds`);
    await beginFlood();
    const concurrent = await measureCase(bench, name, async () => {
      const flood = beginFlood();
      const measured = await steady(bench, world, healthy);
      await flood;
      return { ...measured, figures: { ...measured.figures, ...(await countPending(world, accountId)) } };
    });
    return [baseline, addRatios(baseline, concurrent)];
  });
}

async function countPending(world: World, accountId: number): Promise<{ stillPending: number }> {
  const { rows } = await world.database.pool.query<{ count: number }>(
    `SELECT count(*)::float8 AS count FROM deliveries WHERE account_id = $1 AND status = 'pending'`,
    [accountId],
  );
  return { stillPending: rows[0]?.count ?? 0 };
}

/** Opens new services with one dispatcher. Attempts that are in flight at the end are abandoned. */
async function withWorld(
  bench: Bench,
  environment: Record<string, string>,
  measure: (world: World) => Promise<Row[]>,
): Promise<Row[]> {
  bench.progress('setting up');
  const world = await bench.openWorld(bench.queue, { environment });
  try {
    await world.setDispatchers(1);
    return await measure(world);
  } finally {
    await world.killDispatchers();
    await world.close();
  }
}

async function warmUp(bench: Bench, world: World, workload: Workload): Promise<void> {
  bench.progress('warming up');
  const durationMs = Math.min(bench.runMs, WARM_UP_MS);
  const ratePerSecond = 3 * EVENTS_PER_SECOND;
  await openLoop(world, workload, { ratePerSecond, durationMs, raw: bench.raw });
}

async function steady(
  bench: Bench,
  world: World,
  workload: Workload,
  ratePerSecond = EVENTS_PER_SECOND,
): Promise<Measured> {
  const load = { ratePerSecond, durationMs: bench.runMs, raw: bench.raw };
  const { result, usage } = await measureUsage(world, () => openLoop(world, workload, load));
  return { ...result, figures: { ...result.figures, ...usage.figures } };
}

/** Adds the ratios of the medians to those of the row without the flood. */
function addRatios(baseline: Row, row: Row): Row {
  const ratio = (figure: string) => (row.figures[figure] ?? 0) / (baseline.figures[figure] ?? 0);
  return { ...row, figures: { ...row.figures, p50Ratio: ratio('p50Ms'), p99Ratio: ratio('p99Ms') } };
}

const DEFERRED_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

async function waitUntilDeferred(world: World, count: number): Promise<void> {
  const sql = 'SELECT count(*)::int AS count FROM deliveries WHERE deferred_at IS NOT NULL';
  for (const deadline = Date.now() + DEFERRED_TIMEOUT_MS; Date.now() < deadline; await wait(POLL_MS)) {
    const { rows } = await world.database.pool.query<{ count: number }>(sql);
    if ((rows[0]?.count ?? 0) >= count) return;
  }
  throw new Error(`fewer than ${count} deliveries were deferred in ${DEFERRED_TIMEOUT_MS / 1_000} s`);
}
