import pg from 'pg';
import type { Pool } from './open-database.ts';
import { runEach } from './run-each.ts';
import { type BatchOptions, runInBatches } from './run-in-batches.ts';
import { runStatement } from './statements.ts';

/** What one round over the days did. */
export interface DayPartitionsRound {
  /** Partitions made or dropped. */
  changed: number;
  /** Partitions that have to wait for another round, by name. */
  waiting: string[];
}

const DAYS_AHEAD = 7;

const MISSING = `
  SELECT parent, day::date::text AS day
  FROM unnest(ARRAY['events', 'deliveries', 'attempts']) WITH ORDINALITY AS parents (parent, position),
    generate_series((now() AT TIME ZONE 'UTC')::date - 1, (now() AT TIME ZONE 'UTC')::date + $1::int, interval '1 day')
      AS day
  WHERE to_regclass(parent || '_' || to_char(day, 'YYYYMMDD')) IS NULL
  ORDER BY day, position`;

/**
 * Makes the missing day partitions from yesterday to a week ahead. Safe to repeat, and to be called by several. Whoever
 * reads the log for long keeps none of it from anybody else: what he is in the way of waits for the next round. Until a
 * day has its partition its rows are in the default one.
 */
export async function ensureDayPartitions(pool: Pool): Promise<DayPartitionsRound> {
  const missing = await runStatement<DayPartition>(pool, MISSING, [DAYS_AHEAD]);
  return await changeEach(pool, missing, 'SELECT make_day_partition($1, $2::date) AS changed');
}

const OLD = `
  WITH days AS MATERIALIZED (
    SELECT parent.relname AS parent, right(child.relname, 8) AS day
    FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid JOIN pg_class parent ON parent.oid = i.inhparent
    WHERE i.inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)
      AND child.relname ~ ('^' || parent.relname || '_[0-9]{8}$')
  )
  SELECT parent, to_date(day, 'YYYYMMDD')::text AS day FROM days
  WHERE day < to_char((now() AT TIME ZONE 'UTC')::date - $1::int, 'YYYYMMDD')
  ORDER BY day, parent`;

/**
 * Drops the days of the log that are older than the retention. A day is stored for as long as any part of it is within
 * the retention. A partition that another session reads waits for the next round.
 */
export async function dropOldDayPartitions(pool: Pool, retentionDays: number): Promise<DayPartitionsRound> {
  const old = await runStatement<DayPartition>(pool, OLD, [retentionDays]);
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

// By key: ctid identifies no row of a table that is distributed over servers.
const deleteOldStatement = (table: string, key: string) => ({
  name: `delete-old-${table}`,
  text: `
    DELETE FROM ${table} WHERE (${key}) IN (
      SELECT ${key} FROM ${table} WHERE day < (now() AT TIME ZONE 'UTC')::date - $1::int LIMIT $2)
    RETURNING day`,
});

/** Those from yesterday to a week ahead that nobody has made yet, by name; nothing is changed. */
export async function missingDayPartitions(pool: Pool): Promise<string[]> {
  const missing = await runStatement<DayPartition>(pool, MISSING, [DAYS_AHEAD]);
  return missing.map(({ parent, day }) => nameOf(parent, day));
}

interface DayPartition extends pg.QueryResultRow {
  parent: string;
  day: string;
}

/** A lock that did not come, or a circle of them; and a default partition that holds too much. */
const NOT_NOW = new Set(['55P03', '40P01', '55000']);

/** One transaction for each, so that none holds its locks while another waits for its own. */
async function changeEach(
  pool: Pool,
  partitions: readonly DayPartition[],
  change: string,
): Promise<DayPartitionsRound> {
  const round: DayPartitionsRound = { changed: 0, waiting: [] };
  const inTheWay = new Set<string>();
  for (const { parent, day } of partitions) {
    try {
      if (inTheWay.has(parent)) round.waiting.push(nameOf(parent, day));
      else if (await changed(pool, change, [parent, day])) round.changed += 1;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError && NOT_NOW.has(error.code ?? ''))) throw error;
      // What is in the way of one day is in the way of the next; each further try would let others wait as well.
      inTheWay.add(parent);
      round.waiting.push(nameOf(parent, day));
    }
  }
  return round;
}

async function changed(pool: Pool, change: string, values: string[]): Promise<boolean> {
  const [row] = await runStatement<{ changed: boolean }>(pool, change, values);
  return row?.changed === true;
}

const nameOf = (parent: string, day: string) => `${parent}_${day.replaceAll('-', '')}`;
