import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { NO_RECORDING } from '../../src/http/idempotency.ts';
import { type RunsServer, startRunsServer } from './runs-server.ts';

let server: RunsServer;
let job: JobView;
beforeEach(async () => {
  server = await startRunsServer();
  job = await server.createJob('Nightly');
});
afterEach(() => server.close());

const start = (token = server.token, fields: object = {}) =>
  server.call('POST', '/runs/', { job_id: job.id, engine_version: '1.9.0', ...fields }, token);
const sql = (text: string, values: unknown[] = []) => server.database.pool.query(text, values);

/** Counts the connections that `work` takes from the main pool, which does not record reports. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const onAcquire = () => void count++;
  server.servicePool.on('acquire', onAcquire);
  await work();
  server.servicePool.off('acquire', onAcquire);
  return count;
}

describe('a caller who reports runs', () => {
  test('is read once and then cached', async () => {
    expect(await statements(() => start())).toBe(1);
    expect(await statements(() => start())).toBe(0);
    // A statement that does not compare the version reads the caller.
    expect(await statements(() => server.call('GET', '/runs/'))).toBeGreaterThan(1);
  });

  test.each<[string, string, number]>([
    ['is revoked', 'UPDATE service_tokens SET revoked_at = now()', 401],
    ['has expired', `UPDATE service_tokens SET expires_at = now() - interval '1 s'`, 401],
    ['is deleted', 'DELETE FROM service_tokens', 401],
    ['lacks the permission', `UPDATE service_tokens SET permission_sets = '{developer}'`, 403],
    ['is deleted with its account', 'DELETE FROM accounts', 401],
  ])('is rejected as soon as the change is committed: its token %s', async (_, change, status) => {
    await start(server.token, { run_id: 5 });
    await sql(change);
    const writtenBefore = await server.written();
    expect((await start()).status).toBe(status);
    expect((await server.call('POST', '/runs/5/finish/', { status: 'errored' })).status).toBe(status);
    // A report without effect does not return the run, either.
    expect((await start(server.token, { run_id: 5 })).status).toBe(status);
    expect(await server.written()).toEqual(writtenBefore);
  });

  test('is cached again after an unrelated change', async () => {
    await start();
    await server.tokenWith(['admin']);
    await sql('UPDATE service_tokens SET permission_sets = permission_sets');
    expect((await start()).status).toBe(201);
    expect(await statements(() => start())).toBe(0);
  });

  test('is rejected when its cached key expires', async () => {
    const token = await server.tokenWith(['job_runner']);
    await sql(
      `UPDATE service_tokens SET expires_at = clock_timestamp() + interval '300 ms'
       WHERE id = (SELECT max(id) FROM service_tokens)`,
    );
    expect((await start(token)).status).toBe(201);
    await sql('SELECT pg_sleep(0.3)');
    expect((await start(token)).status).toBe(401);
  });

  test('is rejected once its token is revoked, although cached, as the statement checks the version', async () => {
    await start();
    const { rows } = await sql(`SELECT version FROM cache_version`);
    await sql('BEGIN; UPDATE service_tokens SET revoked_at = now(); COMMIT');
    expect((await sql(`SELECT version FROM cache_version`)).rows).not.toEqual(rows);
    const responses = await Promise.all(Array.from({ length: 20 }, () => start()));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await server.written()).runs).toBe(1);
  });
});

test('a run of a renamed job has the new name', async () => {
  await start();
  await sql(`UPDATE jobs SET name = 'Renamed'`);
  await sql(`UPDATE projects SET name = 'Elsewhere'`);
  const { json } = await start();
  expect(json.data).toMatchObject({ job_name: 'Renamed', project_name: 'Elsewhere' });
  const events = await server.sentEvents();
  expect(events.map(({ data }) => JSON.parse(data).jobName)).toEqual(['Nightly', 'Renamed']);
});

test('a transaction that changes many callers raises cache_version once, and a rolled back one does not', async () => {
  const version = async () => BigInt((await sql('SELECT version FROM cache_version')).rows[0].version);
  for (let index = 0; index < 5; index++) await server.tokenWith(['job_runner']);
  // Sets a version ahead of the clock, so that the next version is one higher.
  await sql('UPDATE cache_version SET version = $1', [(Date.now() + 3_600_000) * 1_000]);
  const writtenBefore = await version();
  await sql('UPDATE service_tokens SET permission_sets = permission_sets');
  expect(await version()).toBe(writtenBefore + 1n);
  await sql('BEGIN; UPDATE service_tokens SET permission_sets = permission_sets; ROLLBACK');
  expect(await version()).toBe(writtenBefore + 1n);
});

/** Sends concurrent starts as the endpoint passes them on. */
function startConcurrently(fields: { run_id?: number; job_id?: number }[]) {
  const reporting = { accountId: server.accountId, version: null, recorder: NO_RECORDING };
  return Promise.all(
    fields.map((one) =>
      server.runs.start(reporting, { job_id: job.id, engine_version: '1.9.0', ...one }, (outcome) => ({
        code: 200,
        data: outcome,
      })),
    ),
  );
}

test('concurrent reports are committed together with separate outcomes', async () => {
  let statementCount = 0;
  server.reportPool.on('acquire', () => void statementCount++);
  const responses = await startConcurrently([
    ...Array(60).fill({}),
    { job_id: 4_711 },
    { run_id: 500 },
    { run_id: 500 },
  ]);
  const kinds = responses.map(({ data }) => (data as { kind: string }).kind);
  expect(kinds).toEqual([...Array(60).fill('started'), 'unknown_job', 'started', 'existing']);
  // Ids, jobs and the write; then jobs, the write and the read for the second report of run 500.
  expect(statementCount).toBe(6);
  expect(await server.written()).toEqual({ runs: 61, events: 61, relayed: 61 });
  expect(server.relayedEvents()).toEqual([61]);
});

describe('a run that this process has started', () => {
  const finish = (status = 'errored') => server.call('POST', '/runs/7/finish/', { status });
  const artifacts = () => server.call('POST', '/runs/7/artifacts/');
  /** Counts the statements that record reports. */
  async function reportStatements(work: () => Promise<unknown>): Promise<number> {
    let count = 0;
    const onAcquire = () => void count++;
    server.reportPool.on('acquire', onAcquire);
    await work();
    server.reportPool.off('acquire', onAcquire);
    return count;
  }
  beforeEach(async () => void (await start(server.token, { run_id: 7 })));

  test('is read and changed by one statement each, and the response has the recorded state', async () => {
    expect(await reportStatements(finish)).toBe(2);
    expect(await reportStatements(artifacts)).toBe(2);
    // A repeated report changes nothing and reads the record.
    const repeatResponse = await artifacts();
    const { run_steps, ...run } = (await server.call('GET', '/runs/7/')).json.data;
    expect(run_steps).toEqual([]);
    expect(run).toEqual(repeatResponse.json.data);
    expect(await server.written()).toEqual({ runs: 1, events: 3, relayed: 3 });
  });

  test.each<[string, string, number]>([
    ['has ended otherwise', `UPDATE runs SET status = 'Success', finished_at = now()`, 409],
    ['is deleted', 'DELETE FROM runs', 404],
  ])('is read again when it %s meanwhile', async (_, change, status) => {
    await sql(change);
    expect((await finish()).status).toBe(status);
    expect((await server.written()).events).toBe(1);
  });

  test('is read again when another process has changed it', async () => {
    await sql(`UPDATE runs SET artifacts_ingested_at = now()`);
    expect((await finish()).status).toBe(200);
    // The event that waited for the end of the run is sent with it.
    expect(await server.written()).toEqual({ runs: 1, events: 3, relayed: 3 });
  });
});

test('a run id that a runner supplies is not drawn for a concurrent start', async () => {
  const responses = await startConcurrently([{}, { run_id: 1 }, {}, { run_id: 2 }]);
  const outcomes = responses.map(({ data }) => data as { kind: string; run: { id: number } });
  expect(outcomes.map(({ kind, run }) => [kind, run.id])).toEqual([
    ['started', 3],
    ['started', 1],
    ['started', 4],
    ['started', 2],
  ]);
  expect(await server.written()).toEqual({ runs: 4, events: 4, relayed: 4 });
});
