import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { JobView } from '@runhook/database';
import { V2_STATUS } from '../v2-status.ts';
import { type Json, type RunsServer, startRunsServer, withoutDurations } from './runs-server.ts';

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
    expect(json).toMatchObject({
      data: [withoutDurations(runs[1]), withoutDurations(runs[0])],
      status: { code: 200, ...V2_STATUS },
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

  test('accepts every spelling of lists that clients send; empty lists are no filter', async () => {
    const hourly = await server.createJob('Hourly');
    await start(nightly.id, 1);
    await start(hourly.id, 2);
    await start(hourly.id, 3);
    await server.call('POST', '/runs/2/finish/', { status: 'success' });
    await server.call('POST', '/runs/3/finish/', { status: 'errored' });
    const { account_id: account, project_id: project, environment_id: environment } = nightly;
    const queries: [string, number[]][] = [
      [`account_id=${account}`, [3, 2, 1]],
      ['status=10', [2]],
      ['status=Error', [3]],
      ['status=errored&status__in=[10,20]', [3]],
      ['status__in=[10, 20]', [3, 2]],
      ['status__in=["10","3"]', [2, 1]],
      ["status__in=['Success', 'Cancelled']", [2]],
      ['status__in=10&status__in=3', [2, 1]],
      ['status__in=[1,2,3]', [1]],
      ['status__in=[]&status=&include_related=', [3, 2, 1]],
      ['id__in=[1,3]', [3, 1]],
      ['id__in=2', [2]],
      [`project_id__in=[${project},99]`, [3, 2, 1]],
      ['project_id__in=[99]', []],
      [`environment_id__in=${environment}`, [3, 2, 1]],
      ['environment_id__in=[98,99]', []],
      ['deferring_run_id=1', []],
      [`job_definition_id=${hourly.id}&order_by=id&limit=1`, [2]],
      ['created_at__range=["2026-11-21 10:00:00", "2099-11-29 10:00:00"]', [3, 2, 1]],
      ['created_at__range=["2020-01-01T00:00:00+00:00","2020-01-02T00:00:00 00:00"]', []],
    ];
    for (const [query, ids] of queries) {
      const { json } = await server.call(
        'GET',
        `/runs?${query.replaceAll('"', '%22').replaceAll(' ', '%20')}`,
      );
      expect([query, json.data?.map((run: Json) => run.id)]).toEqual([query, ids]);
      expect(json.extra.pagination.total_count).toBe(query.includes('limit') ? 2 : ids.length);
    }
  });

  test('includes the related objects of a closed list, in every spelling that clients send', async () => {
    await start(nightly.id, 1);
    const spellings = [
      'include_related=["job","run_steps"]',
      "include_related=['job', 'run_steps']",
      'include_related=run_steps,job',
      'include_related=["run_steps,job"]',
      'include_related=job&include_related=run_steps',
      'include_related=[job,run_steps]',
    ];
    for (const spelling of spellings) {
      for (const path of ['/runs', '/runs/1/']) {
        const { json } = await server.call(
          'GET',
          `${path}?${spelling.replaceAll('"', '%22').replaceAll(' ', '%20')}`,
        );
        const [run] = [json.data].flat();
        expect([spelling, run.job, run.run_steps]).toEqual([spelling, expect.objectContaining(nightly), []]);
      }
    }
    const { json } = await server.call('GET', '/runs/1?include_related=environment,repository,trigger');
    expect(json.data).toMatchObject({
      environment: { id: nightly.environment_id, name: 'Production' },
      repository: null,
      trigger: { cause: '' },
    });
    expect(json.data).not.toHaveProperty('job');
  });

  test('makes the job of a run whose job is not on record from the run', async () => {
    await server.database.pool.query(
      `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
                         engine_version, status, started_at)
       VALUES ($1, 77, 4711, 'Elsewhere', 5, 'P', 6, 'E', '1', 'Running', now())`,
      [server.accountId],
    );
    const { json } = await server.call('GET', '/runs/77?include_related=job,environment');
    expect(json.data.job).toMatchObject({ id: 4711, name: 'Elsewhere', project_id: 5, environment_id: 6 });
    expect(json.data.environment).toBeNull();
  });

  test('rejects what it does not know', async () => {
    for (const query of [
      'include_related=jobs',
      'include_related=[job',
      'status__in=[7]',
      'status__in=[10,x]',
      'id__in=[0]',
      'account_id=99',
      'finished_at__range=["2026-11-20"]',
      'finished_at__range=["yesterday","today"]',
      'created_at__range=["2026-11-20","2026-11-21"]&created_at__range=[]',
      'deferring_run_id=x',
      'order_by=status',
      'cost__gt=1',
    ]) {
      const { status, json } = await server.call('GET', `/runs?${query.replaceAll('"', '%22')}`);
      expect([query, status]).toEqual([query, 400]);
      const [name = ''] = query.split('=');
      expect(json.status.developer_message).toMatch(new RegExp(`^${name}: `));
    }
    for (const query of ['include_related=jobs', 'status=10', 'order_by=cost'])
      expect((await server.call('GET', `/runs/1?${query}`)).status).toBe(400);
  });

  test('a poller that continues from its upper bound never misses a run', async () => {
    const finish = async (id: number, finished_at: string) => {
      await start(nightly.id, id);
      await server.call('POST', `/runs/${id}/finish/`, { status: 'success', finished_at });
    };
    const poll = async (from: string, to: string): Promise<number[]> => {
      const range = encodeURIComponent(
        JSON.stringify([from, to].map((time) => `2026-11-20T10:00:${time}+00:00`)),
      );
      const { json } = await server.call('GET', `/runs?finished_at__range=${range}&order_by=finished_at`);
      return json.data.map((run: Json) => run.id);
    };
    await finish(1, '2026-11-20T10:00:01.700000Z');
    await finish(2, '2026-11-20T10:00:02.700001Z');
    expect(await poll('01', '01.699999')).toEqual([]);
    expect(await poll('01.699999', '02.7')).toEqual([1]);
    expect(await poll('02.7', '03.5')).toEqual([2]);
    expect(await poll('02.700001', '02.700001')).toEqual([2]);
    expect(await poll('02.700002', '03.5')).toEqual([]);
    // The run ended at 4.7 s, but its publisher has reported 4 s, after a poll up to 4.5 s.
    expect(await poll('03.5', '04.5')).toEqual([]);
    await finish(3, '2026-11-20T10:00:04Z');
    expect(await poll('04.5', '05.5')).toEqual([3]);
    expect(await poll('05', '05.5')).toEqual([]);
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
      expect(await server.call('GET', path, undefined, reader)).toMatchObject({
        status: 200,
        json: { data: withoutDurations(run), status: { code: 200, ...V2_STATUS } },
      });
    }
  });
});
