import { setTimeout as wait } from 'node:timers/promises';
import { createQueueBackend, openRedis, openShardAdmin, type ShardAdmin } from '@runhook/queue';
import { type Bench, createRow, type Figures, type Measured, type ScenarioResult } from '../bench.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { balance, isBalanced } from '../measure/ledger.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { drain, HEALTHY_ACCOUNTS, warmUp } from './throughput.ts';

const SHARD_COUNTS = [1, 8];
/**
 * Number of drains per shard count and run: repeated measurements differ by up to 7 %, and the effect to be found is 5
 * %.
 */
const ROUNDS = 3;
/** Duration of the measurement of an idle system, which includes maintenance that runs once a minute exactly once. */
const IDLE_MS = 60_000;
const IDLE_MS_QUICK = 5_000;
/** Wait until dispatchers and publisher, which check the shard map once a second, have the new one. */
const MAP_REFRESH_MS = 3_000;

/**
 * Measures the cost of shards that bring no benefit: one dispatcher on one Redis, with one shard and with eight. The
 * same processes alternate between both, so that only the shards differ. Measures the time to drain a full queue and
 * the CPU of an idle system.
 */
export async function shards(bench: Bench): Promise<ScenarioResult> {
  const world = await bench.openWorld('redis');
  const admin = openShardAdmin(createQueueBackend(world.queueUrl), () => undefined, 0);
  try {
    const workload = await createWorkload(world, [{ behaviour: 'ok', accounts: HEALTHY_ACCOUNTS }]);
    await world.setDispatchers(1);
    bench.progress('shards, warming up');
    let events = 0;
    for (const count of SHARD_COUNTS.toReversed()) {
      await setShardCount(world, admin, count);
      events = await warmUp(bench, world, workload);
    }
    const drained = new Map<number, Measured[]>(SHARD_COUNTS.map((count) => [count, []]));
    const idle = new Map<number, Measured[]>(SHARD_COUNTS.map((count) => [count, []]));
    const rounds = bench.runs * ROUNDS;
    for (let round = 1; round <= rounds; round += 1)
      for (const count of alternateCounts(round)) {
        const name = `${nameOf(count)}, ${round} of ${rounds}`;
        await setShardCount(world, admin, count);
        bench.progress(name);
        const shardIndexes = Array.from({ length: count }, (_, shard) => shard);
        const measured = await drain(world, workload, { events, raw: bench.raw, shards: shardIndexes });
        if (!isBalanced(measured.balance)) bench.markVoid(`${name}: its ledger does not balance`);
        drained.get(count)?.push(measured);
      }
    for (let run = 1; run <= bench.runs; run += 1)
      for (const count of alternateCounts(run)) {
        await setShardCount(world, admin, count);
        bench.progress(`${nameOf(count)}, idle, run ${run} of ${bench.runs}`);
        idle.get(count)?.push(await measureIdle(bench, world));
      }
    const rows = SHARD_COUNTS.flatMap((count) => [
      createRow(nameOf(count), drained.get(count) ?? []),
      createRow(`${nameOf(count)}, idle`, idle.get(count) ?? []),
    ]);
    return { name: 'shards', rows };
  } finally {
    await admin.close();
    await world.close();
  }
}

/** Alternates the order, so that the second measurement has no advantage. */
const alternateCounts = (round: number) => (round % 2 === 1 ? SHARD_COUNTS : SHARD_COUNTS.toReversed());

const nameOf = (count: number) => `${count} shard${count === 1 ? '' : 's'}`;

async function setShardCount(world: World, admin: ShardAdmin, count: number): Promise<void> {
  await admin.spread(count);
  // The shards are empty, so they can be dropped.
  await admin.reconcile();
  // The publisher caches the map and would add its first batches to shards that have been dropped.
  await world.publisher.call('connect', world.queueUrl);
  await wait(MAP_REFRESH_MS);
}

async function measureIdle(bench: Bench, world: World): Promise<Measured> {
  // Waits for the after-effects of a drain, such as open connections to endpoints.
  await wait(bench.isQuick ? 1_000 : 10_000);
  const before = world.readCpu();
  const beganMs = performance.now();
  await wait(bench.isQuick ? IDLE_MS_QUICK : IDLE_MS);
  const use = cpuBetween(before, world.readCpu());
  const seconds = (performance.now() - beganMs) / 1_000;
  const percentOf = (name: string) => (use?.groups[name] ?? Number.NaN) / (seconds * 10);
  const figures: Figures = {
    dispatcherPercent: percentOf('dispatcher'),
    redisPercent: percentOf('redis'),
    postgresPercent: percentOf('postgres'),
    redisConnections: await countConnections(world.queueUrl),
    foreignCpuPercent: (use?.foreignMs ?? Number.NaN) / (seconds * 10),
  };
  return { figures, balance: balance([], { eventIds: [], paths: [], timesMs: [] }) };
}

/** Counts all connections, including those of the publisher and of the scenario. */
async function countConnections(queueUrl: string): Promise<number> {
  const redis = await openRedis(queueUrl, () => undefined, 5_000);
  try {
    return String(await redis?.call('CLIENT', 'LIST'))
      .trim()
      .split('\n').length;
  } finally {
    redis?.disconnect();
  }
}
