import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { type Json, type RunsServer, startRunsServer } from './runs-server.ts';

let server: RunsServer;
let nightly: JobView;
beforeEach(async () => {
  server = await startRunsServer();
  nightly = await server.createJob('Nightly');
});
afterEach(() => server.close());

const start = async (jobId: number, runId: number): Promise<Json> =>
  (await server.call('POST', '/runs/', { job_id: jobId, run_id: runId, engine_version: '1.9.0' })).json.data;

describe('GET …/runs/', () => {
  test('lists the newest runs first, in pages, for any token of the account', async () => {
    const runs = [await start(nightly.id, 30), await start(nightly.id, 10), await start(nightly.id, 20)];
    const reader = await server.tokenWith([]);
    const { status, json } = await server.call('GET', '/runs/?limit=2&offset=1', undefined, reader);
    expect(status).toBe(200);
    expect(json).toEqual({
      data: [runs[1], runs[0]],
      status: { code: 200 },
      extra: { pagination: { total_count: 3, count: 2 }, filters: { offset: 1, limit: 2 } },
    });
  });

  test('filters by job_id and status', async () => {
    const hourly = await server.createJob('Hourly');
    await start(nightly.id, 1);
    await start(hourly.id, 2);
    await start(hourly.id, 3);
    await server.call('POST', '/runs/2/finish/', { status: 'success' });
    const ids = async (query: string) => {
      const { json } = await server.call('GET', `/runs/?${query}`);
      return { ids: json.data.map((run: Json) => run.id), total: json.extra.pagination.total_count };
    };
    expect(await ids(`job_id=${hourly.id}`)).toEqual({ ids: [3, 2], total: 2 });
    expect(await ids('status=Running')).toEqual({ ids: [3, 1], total: 2 });
    expect(await ids(`job_id=${hourly.id}&status=Success`)).toEqual({ ids: [2], total: 1 });
    expect(await ids('job_id=4711')).toEqual({ ids: [], total: 0 });
  });

  test('searches by complete id or part of the job’s name, and filters by start with since and until', async () => {
    const odd = await server.createJob('100% of 12');
    await start(nightly.id, 12);
    await start(odd.id, 120);
    await server.call('POST', '/runs/', {
      job_id: nightly.id,
      run_id: 3,
      engine_version: '1.9.0',
      started_at: '2026-11-20T10:00:00Z',
    });
    const searchResults: [string, number[]][] = [
      ['search=12', [120, 12]],
      ['search=120', [120]],
      ['search=nightLY', [3, 12]],
      ['search=0%25%20o', [120]],
      ['search=_', []],
      ['search=', [3, 120, 12]],
      ['until=2026-11-20T10:00:01Z', [3]],
      ['since=2026-11-20T10:00:01Z', [120, 12]],
      ['since=2026-11-20T10:00:00Z&until=2026-11-20T10:00:00Z', []],
      ['search=nightly&status=Running&until=2026-11-21', [3]],
    ];
    for (const [query, ids] of searchResults) {
      const { json } = await server.call('GET', `/runs/?${query}`);
      expect([query, json.data.map((run: Json) => run.id)]).toEqual([query, ids]);
      expect(json.extra.pagination.total_count).toBe(ids.length);
    }
    expect((await server.call('GET', '/runs/?since=now&search=%00')).json.status.errors).toHaveLength(2);
  });

  test('rejects invalid parameters with a 400 that names each', async () => {
    const { status, json } = await server.call('GET', '/runs/?job_id=x&status=done&limit=101&offset=a');
    expect(status).toBe(400);
    expect(json.status.developer_message.split('\n').map((line: string) => line.split(':')[0])).toEqual([
      'job_id',
      'status',
      'limit',
      'offset',
    ]);
  });

  test('omits runs of another account and rejects its token', async () => {
    const otherAccount = await server.otherAccount('enterprise');
    const foreign = await server.createJob('Nightly', otherAccount.id);
    await server.database.pool.query(
      `INSERT INTO runs SELECT $1, 77, $2, 'j', 1, 'p', 1, 'e', '1', 'Running', NULL, NULL, now()`,
      [otherAccount.id, foreign.id],
    );
    expect((await server.call('GET', '/runs/')).json.data).toEqual([]);
    expect((await server.call('GET', '/runs/77/')).status).toBe(404);
    expect((await server.call('GET', '/runs/', undefined, otherAccount.token)).status).toBe(403);
  });
});

describe('GET …/runs/{run_id}/', () => {
  test('returns the run, with and without a trailing slash, for any token of the account', async () => {
    const run = await start(nightly.id, 30);
    const reader = await server.tokenWith(['read_only']);
    for (const path of ['/runs/30/', '/runs/30']) {
      expect(await server.call('GET', path, undefined, reader)).toEqual({
        status: 200,
        json: { data: run, status: { code: 200 } },
      });
    }
  });
});
