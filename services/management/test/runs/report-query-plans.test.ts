import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Queryable, Statement, Transaction } from '@runhook/database';
import { exampleEvent, formatLiteral } from '@runhook/testing';
import { findRuns } from '../../src/runs/report-reads.ts';
import { recordRuns } from '../../src/runs/report-statements.ts';
import type { RunView } from '../../src/runs/run-view.ts';
import { type RunsServer, startRunsServer } from './runs-server.ts';

/*
 * Statements of reports are planned once per connection, perhaps while there are few runs. The test counts the rows
 * that such a plan reads of many runs, because reading an entire index is an index scan, too.
 */

const RUNS = 5_000;

let server: RunsServer;
let client: Transaction;
beforeAll(async () => {
  server = await startRunsServer();
  client = await server.reportPool.connect();
});
afterAll(async () => {
  client.release(true);
  await server.close();
});

interface PlanNode {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

const planReads = (table: RegExp, node: PlanNode): number => {
  const below = (node.Plans ?? []).reduce((sum, child) => sum + planReads(table, child), 0);
  if (!table.test(node['Relation Name'] ?? '')) return below;
  return below + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'];
};

/** A row without results, whatever the columns. */
const EMPTY_ROW = new Proxy<Record<string, unknown>>(
  { version: '0' },
  { get: (row, name) => row[String(name)] ?? null },
);

/** Executes a statement by the prepared plan of the connection, and records that plan. */
function explained(plans: PlanNode[]): Queryable {
  return {
    async query(statement: Statement) {
      const { name = '', values } = statement;
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, TIMING off, FORMAT JSON) EXECUTE "${name}" (${values.map(formatLiteral).join(', ')})`,
      );
      plans.push(rows[0]['QUERY PLAN'][0].Plan);
      return { rows: [EMPTY_ROW] as never[] };
    },
  };
}

test('a report reads only its own runs with a plan prepared for few runs', async () => {
  const job = await server.createJob('Nightly');
  const view: RunView = (await server.call('POST', '/runs/', { job_id: job.id, engine_version: '1.9.0' }))
    .json.data;
  const { rows } = await client.query('SELECT version FROM cache_version');
  const { version } = rows[0];
  const runWithId = (id: number) => ({ ...view, id });
  const events = (id: number) => [exampleEvent('job.run.started', job, id)];
  const runningState = { status: 'Running' as const, hasFinishTime: false, hasArtifacts: false };
  const written = { version, traceContext: null };
  const start = (id: number) => ({ ...written, run: runWithId(id), expected: null, events: events(id) });
  const change = (id: number) => ({
    ...written,
    run: { ...runWithId(id), status: 'Success' as const },
    expected: runningState,
    events: events(id),
  });
  // Prepares the statements while there are few runs, with an outdated version, so that nothing is written.
  for (const writes of [[start(1)], [change(1)], [start(2), change(2)]])
    await recordRuns(
      client,
      writes.map((write) => ({ ...write, version: '-1' })),
      true,
    );
  await findRuns(client, []);
  await client.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
                       engine_version, started_at, status)
     SELECT account_id, 100000 + n, job_id, job_name, project_id, project_name, environment_id, environment_name,
            engine_version, started_at, status
     FROM runs, generate_series(1, ${RUNS}) AS n`,
  );
  const plans: PlanNode[] = [];
  await recordRuns(explained(plans), [start(900_001), start(900_002), change(100_007)], true);
  await recordRuns(explained(plans), [start(900_003)], true);
  await recordRuns(explained(plans), [change(100_008)], true);
  await findRuns(explained(plans), [
    { accountId: view.account_id, id: 100_009 },
    { accountId: view.account_id, id: 900_001 },
  ]);
  const rowsAfter = await client.query(
    `SELECT id FROM runs WHERE id > 900000 OR status = 'Success' ORDER BY id`,
  );
  expect(rowsAfter.rows.map(({ id }) => Number(id))).toEqual([100_007, 100_008, 900_001, 900_002, 900_003]);
  expect(plans).toHaveLength(4);
  // The plan of an INSERT names only the parent table: a partition in a plan is one that is opened for reading.
  expect(JSON.stringify(plans)).not.toMatch(/events_(\d{8}|default)/);
  // Each run is read once; a changed one is also locked and read again.
  for (const plan of plans) expect(planReads(/^runs$/, plan)).toBeLessThan(12);
});
