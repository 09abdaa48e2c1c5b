import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { type RunsServer, startRunsServer } from './runs-server.ts';

/** A cell of the table in docs/contract.md#triggered-runs: the result of a call on a run in a state. */
interface Cell {
  call: string;
  state: string;
  nextState: string;
  code: number;
  /** Events by the last part of their type. */
  events: string[];
  /** Whether a claim returns the run. */
  isLeased: boolean;
}

const cells = readCells();

function readCells(): Cell[] {
  const contract = readFileSync(new URL('../../../../docs/contract.md', import.meta.url), 'utf8');
  const lines = contract.slice(contract.indexOf('| Call | none |')).split('\n');
  const [header = '', , ...rows] = lines.slice(0, lines.indexOf(''));
  const texts = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((text) => text.trim());
  const [, ...states] = texts(header);
  return rows.flatMap((row) => {
    const [call = '', ...results] = texts(row);
    return results.flatMap((result, index) => {
      const [next, code, ...rest] = result.split(' ');
      const state = states[index] as string;
      if (next === undefined || code === undefined) return [];
      return {
        call,
        state,
        nextState: next === '=' ? state : next,
        code: Number(code),
        events: rest.filter((word) => word !== 'lease'),
        isLeased: rest.includes('lease'),
      };
    });
  });
}

let server: RunsServer;
let job: JobView;
beforeAll(async () => {
  server = await startRunsServer();
  job = await server.createJob('Nightly');
});
afterAll(() => server.close());

const TOKEN = { 'lease-token': 'current' };

type Request = [path: string, body?: object, headers?: Record<string, string>];

/** Requests by the text of the first column. */
const REQUESTS: Record<string, (runId: number) => Request> = {
  '`jobs/{job_id}/run/`': () => [`/jobs/${job.id}/run/`, { cause: 'By hand' }],
  '`runs/`': (runId) => ['/runs/', { job_id: job.id, run_id: runId, engine_version: '1.9' }],
  '`claim/`': (runId) => ['/runs/claim/', { run_id: runId }],
  '`claim/` after the lease': (runId) => ['/runs/claim/', { run_id: runId }],
  '`start/`': (runId) => [`/runs/${runId}/start/`, { engine_version: '1.9' }],
  '`heartbeat/`': (runId) => [`/runs/${runId}/heartbeat/`, {}, TOKEN],
  '`artifacts/`': (runId) => [`/runs/${runId}/artifacts/`],
  '`finish/` success': (runId) => [`/runs/${runId}/finish/`, { status: 'success' }],
  '`finish/` errored': (runId) => [`/runs/${runId}/finish/`, { status: 'errored' }],
  '`finish/` cancelled': (runId) => [`/runs/${runId}/finish/`, { status: 'cancelled' }],
  '`cancel/`': (runId) => [`/runs/${runId}/cancel/`],
  '`retry/`': (runId) => [`/runs/${runId}/retry/`],
  '`finish/` with an older token': (runId) => [
    `/runs/${runId}/finish/`,
    { status: 'success' },
    { 'lease-token': 'older' },
  ],
};

let lastRunId = 1_000;

/** Inserts a triggered run in the state of a column, and returns its id; an unused one for none. */
async function insertRun(state: string, isLeaseOver: boolean): Promise<number> {
  lastRunId += 1_000;
  if (state === 'none') return lastRunId;
  const [status = '', artifacts] = state.split(/(?=\+)/);
  const { pool } = server.database;
  const hasStarted = !['Queued', 'Starting'].includes(status);
  const hasEnded = ['Success', 'Errored', 'Canceled'].includes(status);
  await pool.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status,
       trigger, engine_version, started_at, finished_at, errored_at, artifacts_ingested_at)
     VALUES ($1, $2, $3, 'Nightly', $4, 'Analytics', $5, 'Production', $6, '{}', $7,
       CASE WHEN $8 THEN now() END, CASE WHEN $9 THEN now() END, CASE WHEN $6 = 'Errored' THEN now() END,
       CASE WHEN $10 THEN now() END)`,
    [
      server.accountId,
      lastRunId,
      job.id,
      job.project_id,
      job.environment_id,
      status,
      hasStarted ? '1.9' : null,
      hasStarted,
      hasEnded,
      artifacts !== undefined,
    ],
  );
  const isLeased = status !== 'Queued';
  await pool.query(
    `INSERT INTO run_requests (account_id, run_id, job_id, attempts, lease_token_hash, lease_expires_at)
     VALUES ($1, $2, $3, $4, $5, CASE WHEN $6 THEN now() + $7::int * interval '1 minute' END)`,
    [
      server.accountId,
      lastRunId,
      job.id,
      isLeased ? 1 : 0,
      isLeased ? createHash('sha256').update('current').digest() : null,
      isLeased,
      isLeaseOver ? -1 : 1,
    ],
  );
  return lastRunId;
}

async function readState(runId: number): Promise<string> {
  const { rows } = await server.database.pool.query(
    `SELECT status || CASE WHEN artifacts_ingested_at IS NULL OR status = 'Canceled' THEN '' ELSE '+' END AS state
     FROM runs WHERE account_id = $1 AND id = $2`,
    [server.accountId, runId],
  );
  return rows[0]?.state ?? 'none';
}

test('the table has all calls', () => {
  expect([...new Set(cells.map(({ call }) => call))]).toEqual(Object.keys(REQUESTS));
});

test.each(cells)('$call on a run that is $state leads to $nextState with $code', async (cell) => {
  const { call, state, nextState, code, events, isLeased } = cell;
  const suppliedId = await insertRun(state, call.endsWith('after the lease'));
  const [path, body, headers] = (REQUESTS[call] as (runId: number) => Request)(suppliedId);
  const { status, json } = await server.call('POST', path, body, undefined, headers);
  const isTriggered = path.endsWith('/run/');
  const runId = isTriggered ? json.data.id : suppliedId;
  const { rows } = await server.database.pool.query(
    'SELECT event_type FROM events WHERE account_id = $1 AND run_id = $2',
    [server.accountId, runId],
  );
  expect({
    status,
    state: await readState(runId),
    events: rows.map(({ event_type }) => event_type.replace('job.run.', '')).toSorted(),
    ...(call.startsWith('`claim/`') && { isLeased: json.data !== null }),
  }).toEqual({
    status: code,
    state: nextState,
    events: events.toSorted(),
    ...(call.startsWith('`claim/`') && { isLeased }),
  });
});
