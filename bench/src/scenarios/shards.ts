import { setTimeout as wait } from 'node:timers/promises';
import { createQueueBackend, openRedis, openShardDesk, type ShardDesk } from '@runhook/queue';
import { type Bench, type Figures, type Measured, rowOf, type ScenarioResult } from '../bench.ts';
import { cpuBetween } from '../measure/cpu.ts';
import { balance, isBalanced } from '../measure/ledger.ts';
import { createWorkload } from '../world/workload.ts';
import type { World } from '../world/world.ts';
import { drain, HEALTHY_ACCOUNTS, warmUp } from './throughput.ts';

const COUNTS = [1, 8];
/** Drains with each number of shards, for each run: two of the same kind are up to 7 % apart, and what is looked for is 5 %. */
const TURNS = 3;
/** Some upkeep comes once a minute: each window has it once. */
const REST_MS = 60_000;
const REST_MS_QUICK = 5_000;
/** A dispatcher looks at the map once a second. */
const KNOWN_AFTER_MS = 3_000;

/**
 * What shards cost where they gain nothing: one dispatcher on one Redis, with one shard and with eight. The same processes
 * with one and the other by turns, so that what differs is the shards: how fast a full queue is worked off, and what is used
 * while nothing happens.
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

/** Whoever is second has no advantage of it. */
const inTurn = (turn: number) => (turn % 2 === 1 ? COUNTS : COUNTS.toReversed());

const nameOf = (count: number) => `${count} shard${count === 1 ? '' : 's'}`;

async function divide(world: World, desk: ShardDesk, count: number): Promise<void> {
  await desk.spread(count);
  // Nothing is in them.
  await desk.tend();
  // One that goes on begins with the map as it knew it, and would put its first bulks into shards that are dropped by now.
  await world.publisher.call('connect', world.queueUrl);
  await wait(KNOWN_AFTER_MS);
}

async function rest(bench: Bench, world: World): Promise<Measured> {
  // What a drain leaves behind, such as connections to endpoints.
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

/** Those of the publisher and of the scenario itself as well. */
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
