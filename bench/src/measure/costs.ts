import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import type { Figures } from '../bench.ts';
import type { World } from '../world/world.ts';
import { parseRedisInfo } from './usage.ts';

/** Runs `work`, and returns what it cost PostgreSQL and Redis per event. */
export async function withCosts<Result>(
  world: World,
  work: () => Promise<{ result: Result; events: number }>,
): Promise<{ result: Result; costs: Figures }> {
  const redis = world.redis === null ? null : new Redis(world.redis.url);
  try {
    const before = await readCosts(world, redis);
    const from = await walPosition(world);
    const { result, events } = await work();
    const after = await readCosts(world, redis);
    const { bytes, imageBytes } = await walSince(world, from);
    const costs = Object.fromEntries(
      Object.entries(after).map(([name, value]) => [name, (value - (before[name] ?? 0)) / events]),
    );
    return { result, costs: { ...costs, walBytes: bytes / events, walImageBytes: imageBytes / events } };
  } finally {
    redis?.disconnect();
  }
}

/** Settings of a PostgreSQL that counts statements. */
export const COUNTING_SETTINGS = { shared_preload_libraries: 'pg_stat_statements' };

/** Selects the commits of the database, and the size of all partitions of the log with their indexes. */
const STORES = `
  SELECT (SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = current_database()) AS commits,
         (SELECT sum(pg_total_relation_size(oid))::float8 FROM pg_class
          WHERE relkind = 'r' AND relname ~ '^(events|deliveries|attempts)_') AS "diskBytes"`;

/**
 * Counts the statements of all clients; statements within functions are not counted. The time is that of execution, and
 * of planning if the server records it. It does not include the flush of a commit.
 */
const STATEMENTS = `
  SELECT sum(calls)::float8 AS statements, sum(total_plan_time + total_exec_time) AS "statementMs"
  FROM pg_stat_statements`;

async function readCosts({ database }: World, redis: Redis | null): Promise<Figures> {
  // A backend publishes its statistics when it has been idle for a second, or when it reads them itself.
  const { rows } = await database.pool.query<Figures>(STORES);
  const counted = await countsStatements(database);
  const statements = counted ? (await database.pool.query<Figures>(STATEMENTS)).rows[0] : {};
  const redisCommands =
    redis === null ? {} : { redisCommands: parseRedisInfo(await redis.info('all')).commands };
  return { ...rows[0], ...statements, ...redisCommands };
}

/** Returns the flushed position of PostgreSQL's write-ahead log. */
export async function walPosition({ database }: World): Promise<string> {
  const text = 'SELECT pg_current_wal_flush_lsn()::text AS position';
  return (await database.pool.query<{ position: string }>(text)).rows[0]?.position ?? '0/0';
}

const WAL = `
  SELECT sum(record_size)::float8 AS records, sum(fpi_size)::float8 AS images
  FROM pg_get_wal_stats($1::pg_lsn, pg_current_wal_flush_lsn())`;

/**
 * Returns the bytes of the write-ahead log from a position on, read from the log itself: `pg_stat_wal` lags by up to
 * ten seconds, so a short window would include earlier bytes. `bytes` includes the full-page images: the first change
 * of a page after a checkpoint adds one, later changes do not.
 */
export async function walSince(
  { database }: World,
  from: string,
): Promise<{ bytes: number; imageBytes: number }> {
  await database.pool.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect');
  const { rows } = await database.pool.query<{ records: number; images: number }>(WAL, [from]);
  const { records = 0, images = 0 } = rows[0] ?? {};
  return { bytes: records + images, imageBytes: images };
}

/** Whether the server counts statements. This has a cost, so only worlds for counting enable it. */
async function countsStatements(database: World['database']): Promise<boolean> {
  const text = `SELECT current_setting('shared_preload_libraries') AS libraries`;
  const { rows } = await database.pool.query<{ libraries: string }>(text);
  if (!rows[0]?.libraries.includes('pg_stat_statements')) return false;
  await database.pool.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
  return true;
}

/** Returns the resident memory of a process in megabytes; NaN on systems without /proc. */
export function memoryMb(pid: number): number {
  try {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return (Number(kilobytes) * 1_024) / 1e6;
  } catch {
    return Number.NaN;
  }
}
