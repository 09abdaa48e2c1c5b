import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { eventually } from '@runhook/testing';
import { PARAMETERS } from '../../src/http/openapi/parameters.ts';
import { type Json, type RunsServer, startRunsServer } from './runs-server.ts';

const WAITS_MAX = 3;

let server: RunsServer;
let job: JobView;
beforeAll(async () => {
  server = await startRunsServer({ waitsMax: WAITS_MAX });
  job = await server.createJob('Nightly');
});
afterAll(() => server.close());

const post = (path: string, body?: object | string, headers?: Record<string, string>, token?: string) =>
  server.call('POST', path, body, token, headers);
const trigger = async (body?: object, jobId = job.id): Promise<Json> =>
  (await post(`/jobs/${jobId}/run/`, body)).json.data;
const claim = async (body: object = {}): Promise<Json> => (await post('/runs/claim/', body)).json.data;
const lease = (claimed: Json) => ({ 'lease-token': claimed.lease_token });
const expireLease = (runId: number) =>
  server.database.pool.query(
    `UPDATE run_requests SET lease_expires_at = now() - interval '1 second' WHERE run_id = $1`,
    [runId],
  );
/** Reports with the token of a claim, and returns the status with the header by which a runner ends an execution. */
async function reportAs(claimed: Json, path: string, body: object = {}): Promise<[number, string | null]> {
  const headers = { 'content-type': 'application/json', ...lease(claimed) };
  const request = { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await server.fetch(path, request);
  await response.arrayBuffer();
  return [response.status, response.headers.get('lease-lost')];
}
const waiting = (count: number) => eventually(() => expect(server.waits.count).toBe(count));

test('a triggered run has the options of its trigger, null for those that are unset', async () => {
  const options = { cause: 'By hand', threads_override: 4, steps_override: ['dbt build'], git_sha: null };
  const run = await trigger({ ...options, account_id: server.accountId, job_id: job.id });
  expect(run).toMatchObject({ status: 1, status_humanized: 'Queued', reason: 'By hand', started_at: null });
  expect(run.trigger).toMatchObject({ ...options, schema_override: null });
  const claimed = await claim({ run_id: run.id, runner: 'runner-1' });
  expect(claimed).toMatchObject({
    run: { id: run.id, status: 2, trigger: run.trigger },
    execute_steps: ['dbt build'],
    attempt: 1,
  });
});

test.each([
  ['no body', undefined, 200],
  ['null', 'null', 200],
  ['{}', {}, 200],
  ['an unknown override', { warehouse_override: 'big' }, 400],
  ['an unknown override that is null', { warehouse_override: null }, 200],
  ['a thread count of 0', { threads_override: 0 }, 400],
  ['a step that is no text', { steps_override: [1] }, 400],
  ['a text', '"dbt build"', 400],
])('a trigger with %s is a %d', async (_, body, code) => {
  expect((await post(`/jobs/${job.id}/run/`, body)).status).toBe(code);
});

test('a trigger of an unknown job is a 404', async () => {
  expect((await post('/jobs/999999/run/')).status).toBe(404);
  expect((await post('/jobs/999999/rerun/')).status).toBe(404);
});

test('a claimed run has the steps of its job, unless its trigger has some', async () => {
  const other = await server.createJob('With steps');
  expect((await post(`/jobs/${other.id}/`, { execute_steps: ['dbt seed', 'dbt run'] })).status).toBe(200);
  const { id } = await trigger({}, other.id);
  expect(await claim({ run_id: id })).toMatchObject({ execute_steps: ['dbt seed', 'dbt run'] });
  const overridden = await trigger({ steps_override: ['dbt build'] }, other.id);
  expect(await claim({ run_id: overridden.id })).toMatchObject({ execute_steps: ['dbt build'] });
});

test('concurrent claims get different runs, oldest first, and only of the jobs that they name', async () => {
  const other = await server.createJob('Hourly');
  const runs = [await trigger({}, other.id), await trigger({}, other.id), await trigger({}, other.id)];
  const claims = await Promise.all(runs.map(() => claim({ job_ids: [other.id] })));
  expect(claims.map(({ run }) => run.id).toSorted()).toEqual(runs.map(({ id }) => id).toSorted());
  expect(await claim({ job_ids: [other.id] })).toBeNull();
});

test('a claim that waits gets a run as soon as it is triggered, also with an Idempotency-Key', async () => {
  const other = await server.createJob('Waited for');
  const claimed = post('/runs/claim/', { job_ids: [other.id], wait: 30 }, { 'idempotency-key': 'k1' });
  await waiting(1);
  const run = await trigger({}, other.id);
  const { json } = await claimed;
  expect(json.data.run.id).toBe(run.id);
  const repeated = await post('/runs/claim/', { job_ids: [other.id], wait: 30 }, { 'idempotency-key': 'k1' });
  expect(repeated.json).toEqual(json);
});

test('a cancel ends the wait of a heartbeat, and a later finish is a 409', async () => {
  const { id } = await trigger();
  const claimed = await claim({ run_id: id });
  await post(`/runs/${id}/start/`, { engine_version: '1.9' }, lease(claimed));
  const heartbeat = post(`/runs/${id}/heartbeat/`, { wait: 30 }, lease(claimed));
  await waiting(1);
  expect((await post(`/runs/${id}/cancel/`, 'null')).json.data).toMatchObject({
    status: 30,
    is_cancelled: true,
  });
  expect((await heartbeat).json.data).toMatchObject({ run: { id, status: 30 } });
  const step = { index: 1, name: 'dbt build', status: 'Running' };
  const lost = [409, 'true'];
  expect(await reportAs(claimed, `/runs/${id}/finish/`, { status: 'success' })).toEqual(lost);
  expect(await reportAs(claimed, `/runs/${id}/start/`, { engine_version: '1.9' })).toEqual(lost);
  expect(await reportAs(claimed, `/runs/${id}/steps/`, { run_steps: [step] })).toEqual(lost);
});

test('a 409 for another reason than the loss of the run has no header that ends its execution', async () => {
  const { id } = await trigger();
  const claimed = await claim({ run_id: id });
  expect(await reportAs(claimed, `/runs/${id}/finish/`, { status: 'success' })).toEqual([409, null]);
  const steps = Array.from({ length: 101 }, (_, index) => ({ index, name: 'dbt build', status: 'Running' }));
  const first = await reportAs(claimed, `/runs/${id}/steps/`, { run_steps: steps.slice(0, 100) });
  expect(first).toEqual([200, null]);
  const beyond = await reportAs(claimed, `/runs/${id}/steps/`, { run_steps: steps.slice(100) });
  expect(beyond).toEqual([409, null]);
});

test('another runner gets the run after its lease; the first one gets a 409, also when the run has ended', async () => {
  const { id } = await trigger();
  const first = await claim({ run_id: id });
  await post(`/runs/${id}/start/`, { engine_version: '1.9' }, lease(first));
  expect(await claim({ run_id: id })).toBeNull();
  await expireLease(id);
  const second = await claim({ run_id: id });
  expect(second).toMatchObject({ run: { id, status: 3 }, attempt: 2 });
  const sent = server.relayed();
  expect(
    (await post(`/runs/${id}/start/`, { engine_version: '2.0' }, lease(second))).json.data,
  ).toMatchObject({
    status: 3,
    engine_version: '1.9',
  });
  expect(server.relayed()).toBe(sent);
  for (const path of ['heartbeat/', 'artifacts/'])
    expect(await reportAs(first, `/runs/${id}/${path}`)).toEqual([409, 'true']);
  expect((await post(`/runs/${id}/finish/`, { status: 'success' }, lease(second))).status).toBe(200);
  expect((await post(`/runs/${id}/finish/`, { status: 'success' }, lease(first))).status).toBe(409);
  expect((await post(`/runs/${id}/finish/`, { status: 'success' }, lease(second))).status).toBe(200);
});

test('an empty token is a 409, as every token that is not that of the lease, and valid by the schema', async () => {
  const { id } = await trigger();
  await claim({ run_id: id });
  for (const [path, body] of [
    ['start/', { engine_version: '1.9' }],
    ['heartbeat/', {}],
    ['steps/', { run_steps: [{ index: 1, name: 'Build', status: 'Running' }] }],
    ['finish/', { status: 'success' }],
    ['artifacts/', {}],
  ] as const) {
    const result = await reportAs({ lease_token: '' }, `/runs/${id}/${path}`, body);
    expect([path, result]).toEqual([path, [409, 'true']]);
  }
  expect(PARAMETERS.LeaseToken.schema).toEqual({ type: 'string' });
});

test('a runner whose lease expired keeps its run with a heartbeat as long as no other runner has claimed it', async () => {
  const { id } = await trigger();
  const claimed = await claim({ run_id: id });
  await expireLease(id);
  const { json } = await post(`/runs/${id}/heartbeat/`, {}, lease(claimed));
  expect(Date.parse(json.data.lease_expires_at)).toBeGreaterThan(Date.now());
  expect(await claim({ run_id: id })).toBeNull();
  expect((await post(`/runs/${id}/heartbeat/`)).status).toBe(400);
});

test('POST …/runs/ with the id of a queued run of the job starts it, once, and takes it from the queue', async () => {
  const { id } = await trigger({ cause: 'By hand' });
  const start = { job_id: job.id, run_id: id, engine_version: '1.9', started_at: '2026-01-31T23:00:00Z' };
  const sent = server.relayed();
  const [started, repeated] = await Promise.all([post('/runs/', start), post('/runs/', start)]);
  for (const { status, json } of [started, repeated]) {
    expect(status).toBe(200);
    expect(json.data).toMatchObject({ id, status: 3, engine_version: '1.9', reason: 'By hand' });
    expect(json.data.started_at).toMatch(/^2026-01-31T23:00:00/);
  }
  expect(server.relayed()).toBe(sent + 1);
  expect(await claim({ run_id: id })).toBeNull();
  const other = await server.createJob('Another job');
  expect((await post('/runs/', { ...start, job_id: other.id })).status).toBe(409);
});

test('a claim skips a run that another runner is starting without a lease', async () => {
  const { id } = await trigger();
  const start = await server.database.pool.connect();
  try {
    await start.query('BEGIN');
    await start.query(`UPDATE runs SET status = 'Running' WHERE account_id = $1 AND id = $2`, [
      server.accountId,
      id,
    ]);
    const { status, json } = await post('/runs/claim/', { run_id: id });
    expect([status, json.data]).toEqual([200, null]);
  } finally {
    await start.query('COMMIT');
    start.release();
  }
  const { rows } = await server.database.pool.query('SELECT attempts FROM run_requests WHERE run_id = $1', [
    id,
  ]);
  expect(rows).toEqual([{ attempts: 0 }]);
});

test('runs count as open until they end, and not until their requests do', async () => {
  const { pool } = server.database;
  const [first, last] = [5_000_001, 5_010_000];
  const values = [server.accountId, job.id, first, last];
  await pool.query(
    `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name, status)
     SELECT $1, id, $2, 'a', 1, 'a', 1, 'a', 'Running' FROM generate_series($3::int, $4::int) AS id`,
    values,
  );
  await pool.query(
    `INSERT INTO run_requests (account_id, run_id, job_id) SELECT $1, id, $2 FROM generate_series($3::int, $4::int) AS id`,
    values,
  );
  expect((await post(`/jobs/${job.id}/run/`)).status).toBe(409);
  await pool.query(`UPDATE runs SET status = 'Success' WHERE account_id = $1 AND status = 'Running'`, [
    server.accountId,
  ]);
  expect((await post(`/jobs/${job.id}/run/`)).status).toBe(200);
  await pool.query('DELETE FROM run_requests WHERE run_id BETWEEN $1 AND $2', [first, last]);
});

test('a retry has the options of its run, and a rerun is a retry only of a run that failed', async () => {
  const other = await server.createJob('Retried');
  const rerun = async (): Promise<Json> => (await post(`/jobs/${other.id}/rerun/`)).json.data;
  const first = await trigger({ cause: 'By hand', git_branch: 'main' }, other.id);
  await post(`/runs/${first.id}/start/`, { engine_version: '1.9' });
  expect((await post(`/runs/${first.id}/retry/`)).status).toBe(409);
  await post(`/runs/${first.id}/finish/`, { status: 'errored' });
  const retry = (await post(`/runs/${first.id}/retry/`)).json.data;
  expect(retry).toMatchObject({ status: 1, retry_of: first.id, git_branch: 'main', reason: 'By hand' });
  await post(`/runs/${retry.id}/cancel/`);
  const triggered = await rerun();
  expect(triggered).toMatchObject({ status: 1, retry_of: null, git_branch: null });
  await post(`/runs/${triggered.id}/start/`, { engine_version: '1.9' });
  await post(`/runs/${triggered.id}/finish/`, { status: 'errored' });
  expect(await rerun()).toMatchObject({ retry_of: triggered.id, reason: `Retry of run ${triggered.id}` });
});

test('a developer may trigger, cancel and retry runs, but not claim them', async () => {
  const developer = await server.tokenWith(['developer']);
  const { status, json } = await post(`/jobs/${job.id}/run/`, {}, {}, developer);
  expect(status).toBe(200);
  expect((await post(`/runs/${json.data.id}/cancel/`, {}, {}, developer)).status).toBe(200);
  expect((await post(`/runs/${json.data.id}/retry/`, {}, {}, developer)).status).toBe(200);
  expect((await post('/runs/claim/', {}, {}, developer)).status).toBe(403);
  const reader = await server.tokenWith(['member']);
  expect((await post(`/jobs/${job.id}/run/`, {}, {}, reader)).status).toBe(403);
});

test('a claim ends with null after its time, and a waiting one more than permitted is a 429', async () => {
  const nothing = { job_ids: [999_999] };
  expect(await claim({ ...nothing, wait: 1 })).toBeNull();
  const claims = Array.from({ length: WAITS_MAX }, () => claim({ ...nothing, wait: 30 }));
  await waiting(WAITS_MAX);
  const { status } = await post('/runs/claim/', { ...nothing, wait: 30 });
  expect(status).toBe(429);
  server.waits.close();
  expect(await Promise.all(claims)).toEqual(claims.map(() => null));
});
