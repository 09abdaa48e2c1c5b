import pg from 'pg';
import {
  convertDefaultPartition,
  DEFAULT_BYTES_MAX,
  defaultPartitionBytes,
  LOG_TABLES,
} from './default-partition.ts';
import type { Pool } from './open-database.ts';
import { runEach } from './run-each.ts';
import { type BatchOptions, runInBatches } from './run-in-batches.ts';
import { runStatement } from './statements.ts';

export interface DayPartitionsPass {
  /** Number of partitions that were created, converted or dropped. */
  changed: number;
  /** Names of the partitions that are left to the next pass. */
  waiting: string[];
}

const DAYS_AHEAD = 7;

const SELECT_MISSING_PARTITIONS = `
  SELECT parent, day::date::text AS day
  FROM unnest(ARRAY['events', 'deliveries', 'attempts']) WITH ORDINALITY AS parents (parent, position),
    generate_series((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + $1::int, interval '1 day')
      AS day
  WHERE NOT has_day_partition(parent, parent || '_' || to_char(day, 'YYYYMMDD'))
  ORDER BY day, position`;

/**
 * Creates the missing day partitions from yesterday to a week ahead. Until a day has its partition, its rows are in the
 * default partition; one that exceeds `defaultBytesMax` is converted first. Safe to repeat, and to run concurrently. A
 * table that another session locks for a long time is skipped until the next pass; other sessions wait for an attempt,
 * usually at most 200 ms.
 */
export async function ensureDayPartitions(
  pool: Pool,
  { defaultBytesMax = DEFAULT_BYTES_MAX }: { defaultBytesMax?: number } = {},
): Promise<DayPartitionsPass> {
  const converted = await convertLargeDefaults(pool, defaultBytesMax);
  const missing = await runStatement<DayPartition>(pool, SELECT_MISSING_PARTITIONS, [DAYS_AHEAD]);
  return await changeEach(pool, missing, 'SELECT make_day_partition($1, $2::date) AS changed', converted);
}

async function convertLargeDefaults(pool: Pool, bytesMax: number): Promise<DayPartitionsPass> {
  const pass: DayPartitionsPass = { changed: 0, waiting: [] };
  const bytes = await defaultPartitionBytes(pool);
  for (const parent of LOG_TABLES) {
    if (bytes[parent] <= bytesMax) continue;
    try {
      if ((await convertDefaultPartition(pool, parent)) !== null) pass.changed += 1;
    } catch (error) {
      if (!isRetryable(error)) throw error;
      pass.waiting.push(`${parent}_default`);
    }
  }
  return pass;
}

const SELECT_OLD_PARTITIONS = `
  WITH days AS MATERIALIZED (
    SELECT parent.relname AS parent, substr(child.relname, length(parent.relname) + 2, 8) AS day,
      right(child.relname, 8) AS last_day
    FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent
    WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
      AND child.relname ~ ('^' || parent.relname || '_[0-9]{8}(_[0-9]{8})?$')
  )
  SELECT parent, to_date(day, 'YYYYMMDD')::text AS day FROM days
  WHERE last_day < to_char((now() AT TIME ZONE 'UTC')::date - $1::int, 'YYYYMMDD')
  ORDER BY day, parent`;

/**
 * Drops the partitions of the log whose last day is older than the retention. A day is stored for as long as any part of
 * it is within the retention. A partition that another session reads is left to the next pass.
 */
export async function dropOldDayPartitions(pool: Pool, retentionDays: number): Promise<DayPartitionsPass> {
  const old = await runStatement<DayPartition>(pool, SELECT_OLD_PARTITIONS, [retentionDays]);
  return await changeEach(pool, old, 'SELECT drop_day_partition($1, $2::date) AS changed');
}

/** Deletes rows that are older than the retention from tables that have no day partitions, and from default partitions. */
export async function deleteOldUnpartitioned(
  pool: Pool,
  retentionDays: number,
  options: BatchOptions = {},
): Promise<void> {
  const deleteOld = (table: string, key: string) => () =>
    runInBatches(pool, { ...deleteOldStatement(table, key), values: [retentionDays] }, options);
  await runEach({
    attempts: deleteOld('attempts_default', 'day, delivery_id, number, account_id'),
    deliveries: deleteOld('deliveries_default', 'day, id, account_id'),
    events: deleteOld('events_default', 'day, id, account_id'),
    // Events that were not dispatched within the retention.
    undispatchedEvents: deleteOld('undispatched_events', 'day, event_id, account_id'),
  });
}

// Rows are selected by key, because ctid does not identify a row of a table that is distributed over servers.
const deleteOldStatement = (table: string, key: string) => ({
  name: `delete-old-${table}`,
  text: `
    DELETE FROM ${table} WHERE (${key}) IN (
      SELECT ${key} FROM ${table} WHERE day < (now() AT TIME ZONE 'UTC')::date - $1::int LIMIT $2)
    RETURNING day`,
});

/** Returns the names of the missing partitions from yesterday to a week ahead. Changes nothing. */
export async function findMissingDayPartitions(pool: Pool): Promise<string[]> {
  const missing = await runStatement<DayPartition>(pool, SELECT_MISSING_PARTITIONS, [DAYS_AHEAD]);
  return missing.map(({ parent, day }) => partitionName(parent, day));
}

interface DayPartition extends pg.QueryResultRow {
  parent: string;
  day: string;
}

/** SQLSTATEs of a lock timeout, a deadlock, and a default partition that is too large. */
const RETRYABLE_SQLSTATES = new Set(['55P03', '40P01', '55000']);
const isRetryable = (error: unknown) =>
  error instanceof pg.DatabaseError && RETRYABLE_SQLSTATES.has(error.code ?? '');

/** Uses one transaction for each partition, so that none holds its locks while another one waits. */
async function changeEach(
  pool: Pool,
  partitions: readonly DayPartition[],
  change: string,
  { changed, waiting }: DayPartitionsPass = { changed: 0, waiting: [] },
): Promise<DayPartitionsPass> {
  const pass = { changed, waiting: [...waiting] };
  const blockedParents = new Set<string>();
  for (const { parent, day } of partitions) {
    try {
      if (blockedParents.has(parent)) pass.waiting.push(partitionName(parent, day));
      else if (await hasChanged(pool, change, [parent, day])) pass.changed += 1;
    } catch (error) {
      if (!isRetryable(error)) throw error;
      // The lock that blocks one day blocks the next, and each attempt makes other sessions wait.
      blockedParents.add(parent);
      pass.waiting.push(partitionName(parent, day));
    }
  }
  return pass;
}

async function hasChanged(pool: Pool, change: string, values: string[]): Promise<boolean> {
  const [row] = await runStatement<{ changed: boolean }>(pool, change, values);
  return row?.changed === true;
}

const partitionName = (parent: string, day: string) => `${parent}_${day.replaceAll('-', '')}`;
