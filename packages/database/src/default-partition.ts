import pg from 'pg';
import { inTransaction, type Pool, type Transaction } from './open-database.ts';
import { isItemFault, runStatement } from './statements.ts';

/** Tables of the log, each partitioned by day. */
export const LOG_TABLES = ['events', 'deliveries', 'attempts'] as const;
export type LogTable = (typeof LOG_TABLES)[number];

/** First and last day, both included, as `YYYY-MM-DD`. */
export interface DayRange {
  first: string;
  last: string;
}

/** Size of a default partition above which moving a day out of it would hold its lock for too long. */
export const DEFAULT_BYTES_MAX = 16 * 1024 * 1024;

/** Returns the size of each default partition in bytes. */
export async function defaultPartitionBytes(pool: Pool): Promise<Record<LogTable, number>> {
  const rows = await runStatement<{ parent: string; bytes: string }>(pool, SELECT_DEFAULT_BYTES, [
    LOG_TABLES,
  ]);
  const bytes = new Map(rows.map((row) => [row.parent, Number(row.bytes)]));
  const bytesOf = (parent: LogTable) => bytes.get(parent) ?? 0;
  return { events: bytesOf('events'), deliveries: bytesOf('deliveries'), attempts: bytesOf('attempts') };
}

const SELECT_DEFAULT_BYTES =
  'SELECT parent, default_partition_bytes(parent) AS bytes FROM unnest($1::text[]) AS parent';

/**
 * Turns a default partition into a partition of the days that it contains, and attaches a new default partition. Rows
 * are visible at all times, and no lock that stops reads or writes is held while rows are scanned:
 *
 * 1. A CHECK constraint of the range is added NOT VALID. It covers every day that new rows can have, unless these days
 *    are on both sides of an existing partition: rows of the other side are rejected until step 3
 *    ({@link isConversionRejection}), without affecting other rows, and their jobs are retried.
 * 2. VALIDATE CONSTRAINT scans the table under a lock that stops neither reads nor writes.
 * 3. One transaction detaches the table, attaches it by its range (the constraint makes a scan unnecessary), and
 *    attaches the new default partition. Rows of other days are moved to it first, in the same transaction.
 *
 * Safe to repeat after an interruption at any step, and to run concurrently.
 * @returns the name of the new partition, or null when the default partition is empty
 * @throws pg.DatabaseError 55P03 or 40P01 when a lock was not available
 */
export async function convertDefaultPartition(pool: Pool, parent: LogTable): Promise<string | null> {
  const range = await constrainDays(pool, parent);
  if (range === null) return null;
  if (!(await hasOtherDays(pool, parent, range)))
    await inTransaction(pool, (transaction) => validate(transaction, parent));
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await inTransaction(pool, (transaction) => swap(transaction, parent));
    } catch (error) {
      if (!isLockTimeout(error) || attempt === SWAP_ATTEMPTS) throw error;
    }
  }
}

/**
 * Whether a row was rejected because the partitions of its day are changing: a default partition is being converted, or
 * the row waited for it while a partition of its day was created. The rejection concerns that row only, so a batch is
 * split as for invalid data, and the row can be written some seconds later.
 */
export function isConversionRejection(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || !CONVERSION_SQLSTATES.has(error.code ?? '')) return false;
  const { constraint, table = '', message } = error;
  if (constraint !== undefined) return /_default_\d{8}_\d{8}$/.test(constraint);
  // The bounds of a partition have no name. Citus passes on only the worker's message, in the worker's language: it
  // contains the name of the shard, and the name of the constraint unless it is a bound.
  if (table !== '') return /_default$/.test(table);
  return /_default_\d+/.test(message) && !/_check\b|_check_\d/.test(message);
}

/**
 * Whether an item was rejected for its data and will be rejected again, so that it has to be set aside. A row that is
 * rejected while the partitions of its day change can be written some seconds later.
 */
export function isPermanentRejection(error: unknown): boolean {
  return isItemFault(error) && !isConversionRejection(error);
}

/**
 * SQLSTATEs of a row that a conversion of the default partition rejects: a violated CHECK, which Citus reports as
 * internal for a row that it copies to a worker (INSERT … SELECT).
 */
const CONVERSION_SQLSTATES = new Set(['23514', 'XX000']);
/** Each attempt blocks other sessions for up to 100 ms; between attempts they proceed. */
const SWAP_ATTEMPTS = 10;
/** Timeout for locks whose waiters block no reads or writes. PostgreSQL cancels a conflicting autovacuum after 1 s. */
const LONG_LOCK_MS = 10_000;
const SCAN_MAX_MS = 3_600_000;
const ADVISORY_LOCK = `SELECT pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'))`;

function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '55P03' || error.code === '40P01');
}

/** Adds the constraint of step 1, or reuses the one of an interrupted conversion if it covers the range. */
async function constrainDays(pool: Pool, parent: LogTable): Promise<DayRange | null> {
  return await inTransaction(pool, async (transaction) => {
    await beginStep(transaction, parent);
    const range = chooseRange(await readDays(transaction, parent));
    if (range === null) return null;
    const existing = await readConstraint(transaction, parent);
    if (existing && existing.first <= range.first && existing.last >= range.last) return existing;
    await run(transaction, 'SELECT constrain_default_partition($1, $2::date, $3::date)', [
      parent,
      range.first,
      range.last,
    ]);
    return range;
  });
}

async function hasOtherDays(pool: Pool, parent: LogTable, { first, last }: DayRange): Promise<boolean> {
  const sql = `SELECT 1 FROM ${parent}_default WHERE day < $1::date OR day > $2::date LIMIT 1`;
  return (await runStatement(pool, sql, [first, last])).length > 0;
}

async function validate(transaction: Transaction, parent: LogTable): Promise<void> {
  await beginStep(transaction, parent);
  await run(transaction, 'SELECT validate_default_partition($1)', [parent]);
}

/** Runs step 3. Returns null when another process has converted the table meanwhile. */
async function swap(transaction: Transaction, parent: LogTable): Promise<string | null> {
  await beginStep(transaction, parent);
  const rows = await run<{ name: string | null }>(transaction, 'SELECT swap_default_partition($1) AS name', [
    parent,
  ]);
  return rows[0]?.name ?? null;
}

/** Serializes changes of partitions, and keeps autovacuum away from the table. */
async function beginStep(transaction: Transaction, parent: LogTable): Promise<void> {
  await run(transaction, `SET LOCAL statement_timeout = ${SCAN_MAX_MS}`);
  await run(transaction, `SET LOCAL lock_timeout = ${LONG_LOCK_MS}`);
  await run(transaction, ADVISORY_LOCK);
  await run(transaction, `LOCK TABLE ONLY ${parent}_default IN SHARE UPDATE EXCLUSIVE MODE`);
}

/** Runs a statement with a timeout of one hour, because a scan of a large table takes longer than the pool's timeout. */
async function run<Row extends pg.QueryResultRow>(
  transaction: Transaction,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  return await runStatement<Row>(transaction, text, values, undefined, SCAN_MAX_MS);
}

export interface DaysOfDefault {
  /** Current day in UTC. */
  today: string;
  /** Days with rows in the default partition, ascending. */
  days: readonly { day: string; rows: number }[];
  partitions: readonly DayRange[];
}

async function readDays(transaction: Transaction, parent: LogTable): Promise<DaysOfDefault> {
  const days = await run<{ day: string; rows: number }>(
    transaction,
    `SELECT day::text, count(*)::int AS rows FROM ${parent}_default GROUP BY 1 ORDER BY 1`,
  );
  const [row] = await run<{ today: string }>(transaction, SELECT_TODAY);
  const partitions = await readRanges(transaction, PARTITION_NAMES, parent, `^${parent}_${RANGE_PATTERN}$`);
  return { today: row?.today ?? '', days, partitions };
}

const SELECT_TODAY = `SELECT (now() AT TIME ZONE 'UTC')::date::text AS today`;

/**
 * Days after today that the new partition covers: new rows may carry a time up to a day ahead, and a second day allows
 * for midnight during the conversion.
 */
const DAYS_AHEAD = 2;

/**
 * Chooses the range: of the gaps between existing partitions, the one with the most rows, extended to two days ahead if
 * these days have no partition.
 */
export function chooseRange({ today, days, partitions }: DaysOfDefault): DayRange | null {
  const gaps = new Map<string | undefined, DayRange & { rows: number }>();
  const firstDays = partitions.map(({ first }) => first).sort();
  for (const { day, rows } of days) {
    const next = firstDays.find((first) => first > day);
    const gap = gaps.get(next) ?? { first: day, last: day, rows: 0 };
    gaps.set(next, { first: gap.first, last: day, rows: gap.rows + rows });
  }
  const [largest] = [...gaps].sort(([, a], [, b]) => b.rows - a.rows);
  if (!largest) return null;
  const [next, { first, last }] = largest;
  const beforeNext = next === undefined ? '9999-12-31' : addDays(next, -1);
  const [, lastWanted = last] = [last, addDays(today, DAYS_AHEAD)].sort();
  const [end = last] = [lastWanted, beforeNext].sort();
  return { first, last: end };
}

const RANGE_PATTERN = '[0-9]{8}(_[0-9]{8})?';
const PARTITION_NAMES = `
  SELECT child.relname AS name FROM pg_inherits i JOIN pg_class child ON child.oid = i.inhrelid
  WHERE i.inhparent = $1::regclass AND child.relname ~ $2`;
const CONSTRAINT_NAMES = `
  SELECT conname AS name FROM pg_constraint WHERE conrelid = $1::regclass AND conname ~ $2`;

async function readRanges(
  transaction: Transaction,
  statement: string,
  table: string,
  pattern: string,
): Promise<DayRange[]> {
  const rows = await run<{ name: string }>(transaction, statement, [table, pattern]);
  return rows.map(({ name }) => {
    const [first = '', last = first] = (/\d{8}(?:_\d{8})?$/.exec(name)?.[0] ?? '').split('_').map(isoDay);
    return { first, last };
  });
}

async function readConstraint(transaction: Transaction, parent: LogTable): Promise<DayRange | undefined> {
  const pattern = `^${parent}_default_[0-9]{8}_[0-9]{8}$`;
  return (await readRanges(transaction, CONSTRAINT_NAMES, `${parent}_default`, pattern))[0];
}

const isoDay = (day: string) => `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}`;

function addDays(day: string, count: number): string {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + count);
  return date.toISOString().slice(0, 10);
}
