import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Figures } from '../bench.ts';
import type { World } from '../world/world.ts';
import { cpuBetween } from './cpu.ts';

/** Resources of the machine and the stores that the services used during some work. */
export interface Usage {
  /** Figures of a row, with their units at the end of their names. */
  figures: Figures;
  /** Number of script calls, each of which runs further Redis commands; 0 without a Redis. */
  scriptCalls: number;
}

const SAMPLE_INTERVAL_MS = 1_000;

/** Measures usage during some work. Memory and event loop delay are the maximum of the samples. */
export async function measureUsage<Result>(
  world: World,
  work: () => Promise<Result>,
): Promise<{ result: Result; usage: Usage }> {
  const redis = world.redis === null ? null : new Redis(world.redis.url);
  const done = new AbortController();
  const samples = sampleUntil(world, done.signal);
  try {
    const before = await readStores(world, redis);
    const result = await work();
    const after = await readStores(world, redis);
    done.abort();
    return { result, usage: usageOf(before, after, await samples) };
  } finally {
    done.abort();
    redis?.disconnect();
  }
}

type Reading = Awaited<ReturnType<typeof readStores>>;

async function readStores(world: World, redis: Redis | null) {
  const sql =
    'SELECT xact_commit::float8 AS commits FROM pg_stat_database WHERE datname = current_database()';
  const { rows } = await world.database.pool.query<{ commits: number }>(sql);
  return {
    atMs: performance.now(),
    cpu: world.readCpu(),
    commits: rows[0]?.commits ?? 0,
    redis: redis === null ? null : parseRedisInfo(await redis.info('all')),
  };
}

/** Parses `INFO all`. The commands include both the call of a script and the commands within it. */
export function parseRedisInfo(info: string): { commands: number; scriptCalls: number; usedBytes: number } {
  let commands = 0;
  let scriptCalls = 0;
  for (const [, name = '', calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    commands += Number(calls);
    if (/^(eval|evalsha|fcall)(_ro)?$/.test(name)) scriptCalls += Number(calls);
  }
  return { commands, scriptCalls, usedBytes: Number(/^used_memory:(\d+)/m.exec(info)?.[1]) };
}

interface Sample {
  rssBytes: number;
  loopDelaySeconds: number;
}

/**
 * Samples the dispatchers' metrics and returns the maximum over all dispatchers. A dispatcher that does not respond has
 * no sample.
 */
async function sampleUntil(world: World, done: AbortSignal): Promise<Sample[]> {
  const samples: Sample[] = [];
  while (true) {
    const texts = await Promise.all(
      world.dispatchers.map(({ url }) =>
        fetch(`${url}/metrics`).then(
          (response) => response.text(),
          () => '',
        ),
      ),
    );
    const read = texts.map(parseDispatcherMetrics);
    samples.push({
      rssBytes: Math.max(0, ...read.map(({ rssBytes }) => rssBytes)),
      loopDelaySeconds: Math.max(0, ...read.map(({ loopDelaySeconds }) => loopDelaySeconds)),
    });
    if (done.aborted) return samples;
    await wait(SAMPLE_INTERVAL_MS, undefined, { signal: done }).catch(() => undefined);
  }
}

/** The event loop delay is the maximum since the previous scrape. */
export function parseDispatcherMetrics(text: string): Sample {
  const value = (name: string) =>
    Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)`, 'm').exec(text)?.[1] ?? 0);
  return {
    rssBytes: value('process_resident_memory_bytes'),
    loopDelaySeconds: value('nodejs_eventloop_lag_max_seconds'),
  };
}

const MEGABYTE = 1_000_000;

function usageOf(before: Reading, after: Reading, samples: readonly Sample[]): Usage {
  const seconds = (after.atMs - before.atMs) / 1_000;
  const figures: Figures = {
    dispatcherMb: Math.max(...samples.map(({ rssBytes }) => rssBytes)) / MEGABYTE,
    loopDelayMs: Math.max(...samples.map(({ loopDelaySeconds }) => loopDelaySeconds)) * 1_000,
    commitsPerSecond: (after.commits - before.commits) / seconds,
  };
  const cpu = cpuBetween(before.cpu, after.cpu);
  if (cpu !== null) figures.postgresPercent = (cpu.groups.postgres ?? 0) / (seconds * 10);
  if (before.redis === null || after.redis === null) return { figures, scriptCalls: 0 };
  figures.redisCommandsPerSecond = (after.redis.commands - before.redis.commands) / seconds;
  figures.redisMb = after.redis.usedBytes / MEGABYTE;
  return { figures, scriptCalls: after.redis.scriptCalls - before.redis.scriptCalls };
}
