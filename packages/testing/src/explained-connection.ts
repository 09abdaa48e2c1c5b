import { openDatabase, type Pool } from '@runhook/database';
import pg from 'pg';

/** The output of `EXPLAIN (ANALYZE, FORMAT JSON)` for one execution. */
export interface ExecutedPlan {
  Plan: PlanNode;
  /** Present if any part of the plan was compiled. */
  JIT?: unknown;
  'Planning Time': number;
  'Execution Time': number;
}

interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

export interface ExplainedStatement {
  name: string;
  /** Whether the statement was planned for its values instead of by a generic plan. */
  isCustom: boolean;
  plan: ExecutedPlan;
}

/** A connection with the settings of a service that reports how its prepared statements are executed. */
export interface ExplainedConnection {
  /** For one caller at a time. */
  pool: Pool;
  /** Runs `work`. Before each named statement, executes its prepared statement with EXPLAIN and rolls that back. */
  explain(work: () => Promise<unknown>): Promise<ExplainedStatement[]>;
  close(): Promise<void>;
}

interface Statement {
  name?: string;
  text: string;
  values?: unknown[];
}

export async function openExplainedConnection(url: string): Promise<ExplainedConnection> {
  const database = openDatabase({ url, connectionsMax: 1 });
  const client = await database.pool.connect();
  const found: ExplainedStatement[] = [];
  let isExplaining = false;
  let isInTransaction = false;

  async function explainExecution({ name = '', values = [] }: Statement): Promise<ExplainedStatement> {
    const literals = values.length === 0 ? '' : `(${values.map(formatLiteral).join(', ')})`;
    await client.query(isInTransaction ? 'SAVEPOINT explained' : 'BEGIN');
    const before = await countCustomPlans(name);
    const { rows } = await client.query(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${pg.escapeIdentifier(name)}${literals}`,
    );
    const isCustom = (await countCustomPlans(name)) > before;
    await client.query(isInTransaction ? 'ROLLBACK TO explained' : 'ROLLBACK');
    return { name, isCustom, plan: rows[0]['QUERY PLAN'][0] };
  }

  async function countCustomPlans(name: string): Promise<number> {
    const text = 'SELECT custom_plans::int AS count FROM pg_prepared_statements WHERE name = $1';
    return (await client.query<{ count: number }>(text, [name])).rows[0]?.count ?? 0;
  }

  const query = async (statement: Statement | string) => {
    const text = typeof statement === 'string' ? statement : statement.text;
    if (isExplaining && typeof statement === 'object' && statement.name !== undefined)
      found.push(await explainExecution(statement));
    if (text.startsWith('BEGIN')) isInTransaction = true;
    if (/^(COMMIT|ROLLBACK)/.test(text)) isInTransaction = false;
    return await client.query(statement as pg.QueryConfig);
  };
  const connection = { query, on: () => {}, off: () => {}, release: () => {} };
  return {
    pool: { ...connection, connect: async () => connection } as unknown as Pool,
    async explain(work) {
      found.length = 0;
      isExplaining = true;
      await work().finally(() => {
        isExplaining = false;
      });
      return [...found];
    },
    async close() {
      client.release(true);
      await database.close();
    },
  };
}

/** A parameter as a literal of the text that pg would send. */
export function formatLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'NULL';
  return pg.escapeLiteral(Array.isArray(value) ? `{${value.map(element).join(',')}}` : textOf(value));
}

function element(value: unknown): string {
  return value === null || value === undefined ? 'NULL' : JSON.stringify(textOf(value));
}

function textOf(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Number of rows that scans of the tables read, with those that a filter removed. */
export function countRowsRead({ Plan }: ExecutedPlan, table: RegExp): number {
  const countRows = (node: PlanNode): number => {
    const childRows = (node.Plans ?? []).reduce((sum, child) => sum + countRows(child), 0);
    if (!node['Node Type'].endsWith('Scan') || !table.test(node['Relation Name'] ?? '')) return childRows;
    const removedRows = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
    return childRows + (node['Actual Rows'] + removedRows) * node['Actual Loops'];
  };
  return countRows(Plan);
}
