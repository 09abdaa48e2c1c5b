import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
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

/** How many statements reach the database while something is done. */
async function statements(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const onAcquire = () => void count++;
  server.database.pool.on('acquire', onAcquire);
  await work();
  server.database.pool.off('acquire', onAcquire);
  return count;
}

describe('a caller who reports runs', () => {
  test('is asked for once, and remembered', async () => {
    expect(await statements(() => start())).toBe(1);
    expect(await statements(() => start())).toBe(0);
    // Whatever does not compare the version asks.
    expect(await statements(() => server.call('GET', '/runs/'))).toBeGreaterThan(1);
  });

  test.each<[string, string, number]>([
    ['is revoked', 'UPDATE service_tokens SET revoked_at = now()', 401],
    ['has expired by an operator', `UPDATE service_tokens SET expires_at = now() - interval '1 s'`, 401],
    ['is deleted', 'DELETE FROM service_tokens', 401],
    ['may less', `UPDATE service_tokens SET permission_sets = '{developer}'`, 403],
    ['has no account any more', 'DELETE FROM accounts', 401],
  ])('is refused from the commit on that says that its token %s', async (_, change, status) => {
    await start(server.token, { run_id: 5 });
    await sql(change);
    const before = await server.written();
    expect((await start()).status).toBe(status);
    expect((await server.call('POST', '/runs/5/finish/', { status: 'errored' })).status).toBe(status);
    // A report that changes nothing tells nothing either.
    expect((await start(server.token, { run_id: 5 })).status).toBe(status);
    expect(await server.written()).toEqual(before);
  });

  test('is let in again when the change was another one', async () => {
    await start();
    await server.tokenWith(['admin']);
    await sql(`UPDATE service_tokens SET name = 'renamed'`);
    expect((await start()).status).toBe(201);
    expect(await statements(() => start())).toBe(0);
  });

  test('is refused when a key that expires by itself has', async () => {
    const token = await server.tokenWith(['job_runner']);
    await sql(
      `UPDATE service_tokens SET expires_at = clock_timestamp() + interval '300 ms'
       WHERE id = (SELECT max(id) FROM service_tokens)`,
    );
    expect((await start(token)).status).toBe(201);
    await sql('SELECT pg_sleep(0.3)');
    expect((await start(token)).status).toBe(401);
  });

  test('whose request was let in before the change is refused, too: what is written decides', async () => {
    await start();
    const { rows } = await sql(`SELECT version FROM remembered_version`);
    await sql('BEGIN; UPDATE service_tokens SET revoked_at = now(); COMMIT');
    expect((await sql(`SELECT version FROM remembered_version`)).rows).not.toEqual(rows);
    const answers = await Promise.all(Array.from({ length: 20 }, () => start()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect((await server.written()).runs).toBe(1);
  });
});

test('a job that was renamed is told of by its new name', async () => {
  await start();
  await sql(`UPDATE jobs SET name = 'Renamed'`);
  await sql(`UPDATE projects SET name = 'Elsewhere'`);
  const { json } = await start();
  expect(json.data).toMatchObject({ job_name: 'Renamed', project_name: 'Elsewhere' });
  const events = await server.sent();
  expect(events.map(({ data }) => JSON.parse(data).jobName)).toEqual(['Nightly', 'Renamed']);
});

test('a transaction that changes many callers raises the version once, and one that is undone never', async () => {
  const version = async () => BigInt((await sql('SELECT version FROM remembered_version')).rows[0].version);
  for (let index = 0; index < 5; index++) await server.tokenWith(['job_runner']);
  const before = await version();
  await sql(`UPDATE service_tokens SET name = 'renamed'`);
  expect(await version()).toBe(before + 1n);
  await sql(`BEGIN; UPDATE service_tokens SET name = 'again'; ROLLBACK`);
  expect(await version()).toBe(before + 1n);
});

test('reports that come together are committed together, each with its own outcome', async () => {
  await start(server.token, { run_id: 5 });
  const answers = await Promise.all([
    ...Array.from({ length: 60 }, () => start()),
    ...Array.from({ length: 3 }, () => server.call('POST', '/runs/5/finish/', { status: 'errored' })),
    server.call('POST', '/runs/5/artifacts/'),
    server.call('POST', '/runs/999/artifacts/'),
    start(server.token, { job_id: 4_711 }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([
    ...Array(60).fill(201),
    ...[200, 200, 200, 200, 404, 400],
  ]);
  expect(await server.written()).toEqual({ runs: 61, events: 63, relayed: 63 });
  const ids = answers.slice(0, 60).map(({ json }) => json.data.id);
  expect(new Set(ids).size).toBe(60);
});
