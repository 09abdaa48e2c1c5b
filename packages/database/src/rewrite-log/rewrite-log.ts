import { distinctDays, inDays } from '../day-filter.ts';
import { storedEventData } from '../event-data.ts';
import type { Pool } from '../open-database.ts';
import { REWRITE_IS_PENDING } from '../schema.ts';
import { runStatement } from '../statements.ts';
import { parseOldEvent, restoreHeaders } from './old-rows.ts';

/** Maximum rows of one transaction. Their bytes are bounded too, because an event may have more than a megabyte of text. */
const BATCH_ROWS = 1_000;
const BATCH_BYTES = 16 * 1024 * 1024;

export interface RewrittenTable {
  table: string;
  rewritten: number;
  /** Events that could not be read and are set aside in quarantine. */
  setAside: number;
  /** Deliveries and attempts whose headers could not be read: the headers are removed, other columns are unchanged. */
  withoutHeaders: number;
  /** Reason why the first row that was set aside or lost its headers could not be read, with its id. */
  reason?: string;
}

/**
 * Rewrites rows of the log that releases before 0.2.0 wrote, so that data and headers have their names
 * (docs/upgrading.md). Each batch is a transaction; after an interruption it continues with the remaining rows. Does
 * nothing unless the migration of 0.2.0 found rows. Services must not run meanwhile. `onTable` is called after each
 * partition that had such rows.
 */
export async function rewriteLog(
  pool: Pool,
  { onTable }: { onTable?: (result: RewrittenTable) => void } = {},
): Promise<RewrittenTable[]> {
  const [pending] = await runStatement<{ isPending: boolean | null }>(pool, IS_PENDING, []);
  if (!pending?.isPending) return [];
  const results: RewrittenTable[] = [];
  for (const [parent, rewrite] of Object.entries({
    events: EVENTS,
    deliveries: DELIVERIES,
    attempts: ATTEMPTS,
  })) {
    for (const { name } of await runStatement<{ name: string }>(pool, PARTITIONS, [parent])) {
      const result = await rewriteTable(pool, name, rewrite);
      if (result.rewritten + result.setAside + result.withoutHeaders === 0) continue;
      results.push(result);
      onTable?.(result);
    }
  }
  await runStatement(pool, 'COMMENT ON TABLE events IS NULL', []);
  return results;
}

const IS_PENDING = `SELECT ${REWRITE_IS_PENDING} AS "isPending"`;

// Leaf partitions only: a day may be divided further.
const PARTITIONS = `
  SELECT c.oid::regclass::text AS name FROM pg_partition_tree($1::regclass) p JOIN pg_class c ON c.oid = p.relid
  WHERE p.isleaf ORDER BY 1`;

/** Describes how the rows of a table are read and written. */
interface Rewrite {
  /** Key columns with their types, in the order of the primary key. */
  key: Readonly<Record<string, string>>;
  /** SQL after SELECT and the key, of the table `t`. */
  columns: string;
  /** SQL of a join; `days` is a parameter with the days of the rows, which enables partition pruning. */
  join?: (days: string) => string;
  /** SQL: number of bytes of the text that is read from a row. */
  bytes: string;
  /** SQL: whether a row is in the old form. */
  isOld: string;
  /** Columns that are written, with their types, and the function that returns their values. */
  written: Readonly<Record<string, string>>;
  values: (row: Row) => (string | null)[];
  /** Values of a row that cannot be read. */
  valuesIfUnreadable: (row: Row) => (string | null)[];
  quarantine?: (pool: Pool, row: Row, reason: string) => Promise<void>;
}

interface Row {
  [column: string]: string | number | Date | null;
}

const text = (row: Row, name: string) => row[name] as string;
const readDay = (row: Row) => text(row, 'day');
const EVENTS: Rewrite = {
  key: { id: 'text', account_id: 'bigint', day: 'date' },
  columns: `t.event_type, t."timestamp", t.data::text AS data`,
  bytes: 'octet_length(t.data::text)',
  isOld: 't.run_id IS NULL',
  written: { timestamp: 'text', data: 'json', run_id: 'bigint' },
  values(row) {
    const event = parseOldEvent({
      id: text(row, 'id'),
      accountId: text(row, 'account_id'),
      eventType: text(row, 'event_type'),
      timestamp: text(row, 'timestamp'),
      data: text(row, 'data'),
    });
    return [event.timestamp, storedEventData(event), event.data.runId];
  },
  // The data is retained. A run id of 0, which no run has, marks the row as rewritten.
  valuesIfUnreadable: () => [null, null, '0'],
  async quarantine(pool, row, reason) {
    const key = [row.account_id, row.id];
    await runStatement(pool, QUARANTINE, [...key, reason]);
    await runStatement(pool, 'DELETE FROM undispatched_events WHERE account_id = $1 AND event_id = $2', key);
  },
};

const QUARANTINE = `
  INSERT INTO quarantined_items (account_id, kind, key, reason) VALUES ($1, 'event', $2, $3)
  ON CONFLICT (account_id, kind, key) DO NOTHING`;

const HEADER_COLUMNS = `t.started_at, t.request_headers::text AS request_headers, t.response_headers::text AS response_headers`;
const HEADERS = {
  bytes:
    'coalesce(octet_length(t.request_headers::text), 0) + coalesce(octet_length(t.response_headers::text), 0)',
  isOld: `t.started_at IS NOT NULL
    AND (json_typeof(t.request_headers) = 'string' OR json_typeof(t.response_headers) = 'array')`,
  written: { request_headers: 'json', response_headers: 'json' },
  values: headerValues,
  valuesIfUnreadable: (row: Row) => ['{}', row.response_headers === null ? null : '{}'],
};

function headerValues(row: Row): (string | null)[] {
  const headers = restoreHeaders({
    eventId: text(row, 'event_id'),
    startedAt: row.started_at as Date,
    requestHeaders: text(row, 'request_headers'),
    responseHeaders: row.response_headers as string | null,
  });
  return [headers.requestHeaders, headers.responseHeaders];
}

const DELIVERIES: Rewrite = {
  key: { id: 'text', account_id: 'bigint', day: 'date' },
  columns: `t.event_id, ${HEADER_COLUMNS}`,
  ...HEADERS,
};

const ATTEMPTS: Rewrite = {
  key: { delivery_id: 'text', number: 'int', account_id: 'bigint', day: 'date' },
  columns: `d.event_id, ${HEADER_COLUMNS}`,
  join: (days) =>
    `JOIN deliveries d ON d.day = t.day AND d.id = t.delivery_id AND d.account_id = t.account_id AND d.day = ANY (${days}::date[])`,
  ...HEADERS,
};

async function rewriteTable(pool: Pool, table: string, rewrite: Rewrite): Promise<RewrittenTable> {
  const result: RewrittenTable = { table, rewritten: 0, setAside: 0, withoutHeaders: 0 };
  for (let after: Row | null = null; ; ) {
    const page: SizedRow[] = await runStatement(
      pool,
      selectPage(table, rewrite, after),
      keyOf(rewrite, after),
    );
    for (const batch of splitIntoBatches(page)) {
      // `bytes` is 0 for rows that are not in the old format.
      if (batch.some(({ bytes }) => bytes > 0)) {
        const values = [
          ...keyOf(rewrite, after),
          ...(rewrite.join ? [distinctDays(batch.map(readDay))] : []),
        ];
        const text = selectOldRows(table, rewrite, after, batch.length);
        await writeRows(pool, table, rewrite, await runStatement<Row>(pool, text, values), result);
      }
      after = batch.at(-1) ?? after;
    }
    if (page.length < BATCH_ROWS) return result;
  }
}

/** Key of a row, and the number of bytes that are read from it; 0 if it is not in the old format. */
interface SizedRow extends Row {
  bytes: number;
}

/** Divides a page into batches of at most {@link BATCH_BYTES}, each with at least one row. */
function splitIntoBatches(page: readonly SizedRow[]): SizedRow[][] {
  const batches: SizedRow[][] = [];
  let total = 0;
  for (const row of page) {
    const batch = batches.at(-1);
    total += row.bytes;
    if (batch !== undefined && total <= BATCH_BYTES) batch.push(row);
    else {
      batches.push([row]);
      total = row.bytes;
    }
  }
  return batches;
}

const keyOf = ({ key }: Rewrite, row: Row | null) =>
  row === null ? [] : Object.keys(key).map((name) => row[name]);

/** Returns dates and numbers as text, because they are passed as parameters of the next statement. */
const keyColumns = ({ key }: Rewrite) => Object.keys(key).map((name) => `t.${name}::text AS ${name}`);

/**
 * Returns SQL for the next rows of a table by its key, in either format: PostgreSQL expects few rows in the old format,
 * so a statement that selects only those would read and sort the whole table for each batch.
 */
function selectNextRows(
  table: string,
  { key }: Rewrite,
  after: Row | null,
  columns: string,
  count: number,
): string {
  const names = Object.keys(key).map((name) => `t.${name}`);
  const parameters = Object.values(key).map((type, index) => `$${index + 1}::${type}`);
  const next = after === null ? '' : `WHERE (${names.join(', ')}) > (${parameters.join(', ')})`;
  return `SELECT ${columns} FROM ${table} t ${next} ORDER BY ${names.join(', ')} LIMIT ${count}`;
}

function selectPage(table: string, rewrite: Rewrite, after: Row | null): string {
  const bytes = `CASE WHEN ${rewrite.isOld} THEN (${rewrite.bytes})::int ELSE 0 END AS bytes`;
  return selectNextRows(table, rewrite, after, [...keyColumns(rewrite), bytes].join(', '), BATCH_ROWS);
}

function selectOldRows(table: string, rewrite: Rewrite, after: Row | null, count: number): string {
  const days = `$${keyOf(rewrite, after).length + 1}`;
  return `
    SELECT ${[...keyColumns(rewrite), rewrite.columns].join(', ')}
    FROM (${selectNextRows(table, rewrite, after, 't.*', count)}) AS t ${rewrite.join?.(days) ?? ''}
    WHERE ${rewrite.isOld}`;
}

/** Writes rows. A rejected batch is halved until the rejected row is isolated, which counts as unreadable. */
async function writeRows(
  pool: Pool,
  table: string,
  rewrite: Rewrite,
  rows: readonly Row[],
  result: RewrittenTable,
): Promise<void> {
  const readable: { row: Row; values: (string | null)[] }[] = [];
  for (const row of rows) {
    try {
      readable.push({ row, values: rewrite.values(row) });
    } catch (error) {
      await replaceUnreadable(pool, table, rewrite, row, error, result);
    }
  }
  await writeHalves(readable);

  async function writeHalves(part: typeof readable): Promise<void> {
    if (part.length === 0) return;
    try {
      await write(pool, table, rewrite, part);
      result.rewritten += part.length;
    } catch (error) {
      if (!isDataRejected(error)) throw error;
      const [first] = part;
      if (part.length === 1 && first)
        return await replaceUnreadable(pool, table, rewrite, first.row, error, result);
      const middle = Math.ceil(part.length / 2);
      await writeHalves(part.slice(0, middle));
      await writeHalves(part.slice(middle));
    }
  }
}

/** Whether the data of a row was rejected, by data exceptions and limits of a row: the same row would be rejected again. */
function isDataRejected(error: unknown): boolean {
  return /^(22|54)/.test((error as { code?: string }).code ?? '');
}

async function write(
  pool: Pool,
  table: string,
  { key, written }: Rewrite,
  rows: readonly { row: Row; values: (string | null)[] }[],
): Promise<void> {
  const columns = { ...key, ...written };
  const arrays = Object.values(columns).map((type, index) => `$${index + 1}::${type}[]`);
  const names = Object.keys(columns).map((name) => `"${name}"`);
  const sets = Object.keys(written).map((name) => `"${name}" = coalesce(i."${name}", t."${name}")`);
  const matches = Object.keys(key).map((name) => `t.${name} = i.${name}`);
  await runStatement(
    pool,
    `UPDATE ${table} t SET ${sets.join(', ')} FROM unnest(${arrays.join(', ')}) AS i (${names.join(', ')})
     WHERE ${matches.join(' AND ')} AND ${inDays(`$${arrays.length + 1}`, 'i')}`,
    [
      ...Object.keys(key).map((name) => rows.map(({ row }) => row[name])),
      ...Object.keys(written).map((_, index) => rows.map(({ values }) => values[index])),
      distinctDays(rows.map(({ row }) => readDay(row))),
    ],
  );
}

async function replaceUnreadable(
  pool: Pool,
  table: string,
  rewrite: Rewrite,
  row: Row,
  error: unknown,
  result: RewrittenTable,
): Promise<void> {
  const [id] = keyOf(rewrite, row);
  const reason = `${id} of ${table} could not be rewritten: ${(error as Error).message}`;
  await rewrite.quarantine?.(pool, row, reason);
  await write(pool, table, rewrite, [{ row, values: rewrite.valuesIfUnreadable(row) }]);
  if (rewrite.quarantine) result.setAside += 1;
  else result.withoutHeaders += 1;
  result.reason ??= reason;
}
