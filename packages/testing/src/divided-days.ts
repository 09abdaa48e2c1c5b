import { ensureDayPartitions, openDatabase, type Pool } from '@runhook/database';
import pg from 'pg';
import { citusRestrictions } from './citus-restrictions.ts';
import { createTestDatabase, type TestDatabase } from './template-database.ts';

/** Number of partitions of a divided day. */
const LEAVES = 4;

/**
 * Creates a test database whose log is partitioned as in a distributed PostgreSQL: the same migrations, but the
 * partition of each day is divided by the hash of the account. Days that are created later, including those of the
 * services' maintenance, are divided as well; the default partitions, which contain rows without a day partition, are
 * not.
 */
export async function createDividedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ hasDays: false });
  const { pool, close } = openDatabase({ url: database.url });
  try {
    await pool.query(MAKE_DIVIDED);
    await ensureDayPartitions(pool);
  } finally {
    await close();
  }
  return database;
}

const MAKE_DIVIDED = `
  CREATE OR REPLACE FUNCTION "make_day_partition"(parent text, partition_day date) RETURNS boolean
  LANGUAGE plpgsql AS $$
  DECLARE
    partition_name text := parent || '_' || to_char(partition_day, 'YYYYMMDD');
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('runhook.ensure_day_partitions'));
    IF has_day_partition(parent, partition_name) THEN
      RETURN false;
    END IF;
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%L) TO (%L) PARTITION BY HASH (account_id)',
      partition_name, parent, partition_day, partition_day + 1);
    FOR leaf IN 0..${LEAVES - 1} LOOP
      EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS ${LEAVES}, REMAINDER %s)',
        partition_name || '_' || leaf, partition_name, leaf);
    END LOOP;
    RETURN true;
  END
  $$`;

/** Returns the index of an account's partition within a day. */
export async function leafOf(pool: Pool, accountId: number): Promise<number> {
  const { rows } = await pool.query<{ leaf: number }>(
    `SELECT leaf FROM generate_series(0, ${LEAVES - 1}) AS leaf
     WHERE satisfies_hash_partition(
       ('events_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))::regclass, ${LEAVES}, leaf, $1::bigint)`,
    [accountId],
  );
  return rows[0]?.leaf ?? Number.NaN;
}

/** The partitions that one execution of a statement opened. */
export interface OpenedLeaves {
  /** The statement's name, or its text. */
  statement: string;
  /** The first execution is planned for the values; for a later one PostgreSQL has considered a generic plan. */
  execution: 'first' | 'later';
  /** The partitions of the log that were read, such as `events_20260131_2`; sorted. */
  leaves: string[];
}

interface Statement {
  name?: string;
  text: string;
  values?: unknown[];
}

/** A statement that Citus would reject. */
export interface RestrictedStatement {
  /** The statement's name, or its text. */
  statement: string;
  reasons: string[];
}

/**
 * Returns a pool that runs each statement. Before that it runs the statement with `EXPLAIN (ANALYZE)`, once as a first
 * and once as a later execution, and rolls these back.
 *
 * @param onRestricted called once for each statement that Citus would reject
 */
export function explainingPool(
  pool: Pool,
  onOpened: (opened: OpenedLeaves) => void,
  onRestricted: (restricted: RestrictedStatement) => void,
): Pool {
  const checkedTexts = new Set<string>();
  const explained = async (statement: Statement | string) => {
    if (typeof statement === 'string') return;
    if (PREPARABLE.test(statement.text) && !checkedTexts.has(statement.text)) {
      checkedTexts.add(statement.text);
      const reasons = await citusRestrictions(pool, statement.text);
      if (reasons.length > 0) onRestricted({ statement: statement.name ?? statement.text, reasons });
    }
    if (!OF_LOG.test(statement.text)) return;
    for (const one of await opened(pool, statement))
      onOpened({ statement: statement.name ?? statement.text, ...one });
  };
  return {
    query: async (statement: Statement) => {
      await explained(statement);
      return await pool.query(statement as pg.QueryConfig);
    },
    connect: async () => {
      const client = await pool.connect();
      const query = client.query.bind(client) as (statement: Statement | string) => Promise<unknown>;
      client.query = (async (statement: Statement | string) => {
        await explained(statement);
        return await query(statement);
      }) as never;
      const release = client.release.bind(client);
      client.release = (error) => {
        client.query = query as never;
        release(error);
      };
      return client;
    },
  } as unknown as Pool;
}

const PREPARABLE = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE|VALUES)\b/;
const OF_LOG = /\b(events|deliveries|attempts|logged_attempts)\b/;

/** PostgreSQL plans the first five executions for their values, regardless of the cost of a generic plan. */
const EXECUTIONS = 7;

async function opened(
  pool: Pool,
  { text, values = [] }: Statement,
): Promise<Pick<OpenedLeaves, 'execution' | 'leaves'>[]> {
  const client = await pool.connect();
  const literals = values.map(literal).join(', ');
  const explain = `EXPLAIN (ANALYZE, COSTS off, TIMING off, FORMAT JSON) EXECUTE explained ${literals === '' ? '' : `(${literals})`}`;
  const found: string[][] = [];
  try {
    await client.query('BEGIN');
    await client.query(`PREPARE explained AS ${text}`);
    for (let execution = 0; execution < EXECUTIONS; execution += 1) {
      await client.query('SAVEPOINT explained');
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(explain);
      await client.query('ROLLBACK TO explained');
      const leaves = new Set<string>();
      for (const { Plan } of rows[0]?.['QUERY PLAN'] ?? []) collect(Plan, leaves);
      found.push([...leaves].sort());
    }
    return [
      { execution: 'first', leaves: found[0] ?? [] },
      { execution: 'later', leaves: found.at(-1) ?? [] },
    ];
  } finally {
    await client.query('ROLLBACK');
    await client.query('DEALLOCATE ALL');
    client.release(true);
  }
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Loops': number;
  Plans?: PlanNode[];
}

/** Partitions that pruning excluded have no loops, or are not in the plan. */
function collect(node: PlanNode, leaves: Set<string>): void {
  const { 'Node Type': type, 'Relation Name': relation = '', 'Actual Loops': loops, Plans = [] } = node;
  if (type.endsWith('Scan') && loops > 0 && /^(events|deliveries|attempts)_\d{8}/.test(relation))
    leaves.add(relation);
  for (const child of Plans) collect(child, leaves);
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return pg.escapeLiteral(
    Array.isArray(value) ? JSON.stringify(value).replace(/^\[(.*)\]$/s, '{$1}') : `${value}`,
  );
}
