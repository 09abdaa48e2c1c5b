import { setTimeout as wait } from 'node:timers/promises';
import { createQueueBackend, openRedis, openShardDesk, type ShardDesk } from '@runhook/queue';
import { type Bench, type Figures, type Measured, rowOf, type ScenarioResult } from '../bench.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { balance, isBalanced } from '../measure/ledger.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { drain, HEALTHY_ACCOUNTS, warmUp } from './throughput.ts';

const COUNTS = [1, 8];
/**
 * Number of drains per shard count and run: repeated measurements differ by up to 7 %, and the effect to be found is 5
 * %.
 */
const TURNS = 3;
/** Maintenance that runs once a minute is included once in each window. */
const REST_MS = 60_000;
const REST_MS_QUICK = 5_000;
/** A dispatcher reads the map once a second. */
const KNOWN_AFTER_MS = 3_000;

/**
 * Measures the cost of shards that bring no benefit: one dispatcher on one Redis, with one shard and with eight. The
 * same processes alternate between both, so that only the shards differ. Measures the time to drain a full queue and
 * the CPU of an idle system.
 */
export async function shards(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis');
  const desk = openShardDesk(createQueueBackend(world.queueUrl), () => undefined, 0);
  try {
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    await world.setDispatchers(1);
    bench.progress('shards, warming up');
    let events = 0;
    for (const count of COUNTS.toReversed()) {
      await divide(world, desk, count);
      events = await warmUp(bench, world, workload);
    }
    const drained = new Map<number, Measured[]>(COUNTS.map((count) => [count, []]));
    const rested = new Map<number, Measured[]>(COUNTS.map((count) => [count, []]));
    const turns = bench.runs * TURNS;
    for (let turn = 1; turn <= turns; turn += 1)
      for (const count of inTurn(turn)) {
        const name = `${nameOf(count)}, ${turn} of ${turns}`;
        await divide(world, desk, count);
        bench.progress(name);
        const served = Array.from({ length: count }, (_, shard) => shard);
        const one = await drain(world, workload, { events, raw: bench.raw, shards: served });
        if (!isBalanced(one.balance)) bench.voids(`${name}: its ledger does not balance`);
        drained.get(count)?.push(one);
      }
    for (let run = 1; run <= bench.runs; run += 1)
      for (const count of inTurn(run)) {
        await divide(world, desk, count);
        bench.progress(`${nameOf(count)}, idle, run ${run} of ${bench.runs}`);
        rested.get(count)?.push(await rest(bench, world));
      }
    const rows = COUNTS.flatMap((count) => [
      rowOf(nameOf(count), drained.get(count) ?? []),
      rowOf(`${nameOf(count)}, idle`, rested.get(count) ?? []),
    ]);
    return { name: 'shards', rows };
  } finally {
    await desk.close();
    await world.close();
  }
}

/** Alternates the order, so that the second measurement has no advantage. */
const inTurn = (turn: number) => (turn % 2 === 1 ? COUNTS : COUNTS.toReversed());

const nameOf = (count: number) => `${count} shard${count === 1 ? '' : 's'}`;

async function divide(world: World, desk: ShardDesk, count: number): Promise<void> {
  await desk.spread(count);
  // The shards are empty, so they can be dropped.
  await desk.tend();
  // The publisher caches the map and would add its first batches to shards that have been dropped.
  await world.publisher.call('connect', world.queueUrl);
  await wait(KNOWN_AFTER_MS);
}

async function rest(bench: Bench, world: World): Promise<Measured> {
  // Waits for the after-effects of a drain, such as open connections to endpoints.
  await wait(bench.isQuick ? 1_000 : 10_000);
  const before = world.readCpu();
  const beganMs = performance.now();
  await wait(bench.isQuick ? REST_MS_QUICK : REST_MS);
  const use = cpuBetween(before, world.readCpu());
  const seconds = (performance.now() - beganMs) / 1_000;
  const percentOf = (name: string) => (use?.groups[name] ?? Number.NaN) / (seconds * 10);
  const figures: Figures = {
    dispatcherPercent: percentOf('dispatcher'),
    redisPercent: percentOf('redis'),
    postgresPercent: percentOf('postgres'),
    redisConnections: await connections(world.queueUrl),
    foreignCpuPercent: (use?.foreignMs ?? Number.NaN) / (seconds * 10),
  };
  return { figures, balance: balance([], { eventIds: [], paths: [], timesMs: [] }) };
}

/** Counts all connections, including those of the publisher and of the scenario. */
async function connections(queueUrl: string): Promise<number> {
  const redis = await openRedis(queueUrl, () => undefined, 5_000);
  try {
    return String(await redis?.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;
  } finally {
    redis?.disconnect();
  }
}
