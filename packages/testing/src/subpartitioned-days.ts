import { ensureDayPartitions, openDatabase, type Pool } from '@runhook/database';
import pg from 'pg';
import { findCitusRestrictions } from './citus-restrictions.ts';
import { createTestDatabase, type TestDatabase } from './template-database.ts';

/** Number of partitions of a divided day. */
const LEAVES = 4;

/**
 * Creates a test database whose log is partitioned as in a distributed PostgreSQL: the same migrations, but the
 * partition of each day is divided by the hash of the account. Days that are created later, including those of the
 * services' maintenance, are divided as well; the default partitions, which contain rows without a day partition, are
 * not.
 */
export async function createSubpartitionedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ hasDayPartitions: false });
  const { pool, close } = openDatabase({ url: database.url });
  try {
    await pool.query(CREATE_SUBPARTITIONED_DAY);
    await ensureDayPartitions(pool);
  } finally {
    await close();
  }
  return database;
}

const CREATE_SUBPARTITIONED_DAY = `
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
export async function readLeafIndex(pool: Pool, accountId: number): Promise<number> {
  const { rows } = await pool.query<{ leaf: number }>(
    `SELECT leaf FROM generate_series(0, ${LEAVES - 1}) AS leaf
     WHERE satisfies_hash_partition(
       ('events_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'))::regclass, ${LEAVES}, leaf, $1::bigint)`,
    [accountId],
  );
  return rows[0]?.leaf ?? Number.NaN;
}

/** The partitions that one execution of a statement opened. */
export interface AccessedPartitions {
  /** The statement's name, or its text. */
  statement: string;
  /** The first execution is planned for the values; for a later one PostgreSQL has considered a generic plan. */
  execution: 'first' | 'later';
  /** The partitions of the log that were read, such as `events_20260131_2`; sorted. */
  partitions: string[];
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
export function createExplainingPool(
  pool: Pool,
  onAccess: (accessedPartitions: AccessedPartitions) => void,
  onRestricted: (restricted: RestrictedStatement) => void,
): Pool {
  const checkedTexts = new Set<string>();
  const explainStatement = async (statement: Statement | string) => {
    if (typeof statement === 'string') return;
    if (PREPARABLE_PATTERN.test(statement.text) && !checkedTexts.has(statement.text)) {
      checkedTexts.add(statement.text);
      const reasons = await findCitusRestrictions(pool, statement.text);
      if (reasons.length > 0) onRestricted({ statement: statement.name ?? statement.text, reasons });
    }
    if (!LOG_TABLE_PATTERN.test(statement.text)) return;
    for (const accessed of await accessedPartitions(pool, statement))
      onAccess({ statement: statement.name ?? statement.text, ...accessed });
  };
  return {
    query: async (statement: Statement) => {
      await explainStatement(statement);
      return await pool.query(statement as pg.QueryConfig);
    },
    connect: async () => {
      const client = await pool.connect();
      const query = client.query.bind(client) as (statement: Statement | string) => Promise<unknown>;
      client.query = (async (statement: Statement | string) => {
        await explainStatement(statement);
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

const PREPARABLE_PATTERN = /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE|VALUES)\b/;
const LOG_TABLE_PATTERN = /\b(events|deliveries|attempts|logged_attempts)\b/;

/**
 * Executions of each statement: PostgreSQL plans the first five for their values, regardless of the cost of a generic
 * plan.
 */
const EXECUTIONS = 7;

async function accessedPartitions(
  pool: Pool,
  { text, values = [] }: Statement,
): Promise<Pick<AccessedPartitions, 'execution' | 'partitions'>[]> {
  const client = await pool.connect();
  const literals = values.map(formatLiteral).join(', ');
  const explain = `EXPLAIN (ANALYZE, COSTS off, TIMING off, FORMAT JSON) EXECUTE explained ${literals === '' ? '' : `(${literals})`}`;
  const found: string[][] = [];
  try {
    await client.query('BEGIN');
    await client.query(`PREPARE explained AS ${text}`);
    for (let execution = 0; execution < EXECUTIONS; execution += 1) {
      await client.query('SAVEPOINT explained');
      const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(explain);
      await client.query('ROLLBACK TO explained');
      const partitions = new Set<string>();
      for (const { Plan } of rows[0]?.['QUERY PLAN'] ?? []) collectPartitions(Plan, partitions);
      found.push([...partitions].sort());
    }
    return [
      { execution: 'first', partitions: found[0] ?? [] },
      { execution: 'later', partitions: found.at(-1) ?? [] },
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
function collectPartitions(node: PlanNode, partitions: Set<string>): void {
  const { 'Node Type': type, 'Relation Name': relation = '', 'Actual Loops': loops, Plans = [] } = node;
  if (type.endsWith('Scan') && loops > 0 && /^(events|deliveries|attempts)_\d{8}/.test(relation))
    partitions.add(relation);
  for (const child of Plans) collectPartitions(child, partitions);
}

function formatLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return pg.escapeLiteral(
    Array.isArray(value) ? JSON.stringify(value).replace(/^\[(.*)\]$/s, '{$1}') : `${value}`,
  );
}
