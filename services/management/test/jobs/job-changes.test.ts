import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type Json, type RunsServer, startRunsServer } from '../runs/runs-server.ts';

// A server for all tests: each has its own job, in the project and environment of all of them.
let server: RunsServer;
let job: Json;
let count = 0;

beforeAll(async () => {
  server = await startRunsServer();
});
afterAll(() => server.close());
beforeEach(async () => {
  job = await create({
    name: `Nightly ${count++}`,
    project_name: 'Analytics',
    environment_name: 'Production',
  });
});

async function create(body: object): Promise<Json> {
  const { status, json } = await server.call('POST', '/jobs/', body);
  if (status !== 201) throw new Error(JSON.stringify(json));
  return json.data;
}

const path = (id = job.id) => `/jobs/${id}/`;
const get = async (query = '') => (await server.call('GET', `${path()}${query}`)).json.data;
const update = (body: unknown) => server.call('POST', path(), body);
const startRun = (id = job.id) => server.call('POST', '/runs/', { job_id: id, engine_version: '1.9.0' });
const problemsOf = ({ status, json }: { status: number; json: Json }) => ({
  status,
  problems: json.status.developer_message,
});

describe('a new job', () => {
  test('has project and environment by id, and the defaults of a job of this API family', async () => {
    const { project_id, environment_id } = job;
    const adHoc = await create({
      account_id: server.accountId,
      project_id,
      environment_id,
      name: 'DAGSTER_ADHOC_JOB',
      description: 'A job that runs dbt models, sources, and tests.',
      job_type: 'other',
    });
    expect(adHoc).toMatchObject({
      project_id,
      project_name: 'Analytics',
      environment_id,
      environment_name: 'Production',
      description: 'A job that runs dbt models, sources, and tests.',
      job_type: 'other',
      dbt_version: null,
      execute_steps: [],
      settings: { threads: 4, target_name: 'default' },
      execution: { timeout_seconds: 0 },
      schedule: { cron: '0 * * * *', date: { type: 'every_day' }, time: { type: 'every_hour', interval: 1 } },
      generate_docs: false,
      run_generate_sources: false,
      deferring_job_definition_id: null,
      deferring_environment_id: null,
      state: 1,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
    expect(adHoc.triggers).toEqual({
      github_webhook: false,
      git_provider_webhook: false,
      schedule: false,
      custom_branch_only: false,
      on_merge: false,
    });
  });

  test('stores the fields of other clients', async () => {
    const fields = {
      execute_steps: ['dbt seed', 'dbt build'],
      settings: { threads: 8, target_name: 'prod' },
      execution: { timeout_seconds: 600 },
      triggers: { github_webhook: false, schedule: true },
      schedule: {
        cron: '',
        date: { type: 'days_of_week', days: [1, 5] },
        time: { type: 'at_exact_hours', hours: [6] },
      },
      deferring_environment_id: null,
      run_lint: true,
      job_completion_trigger_condition: { condition: { job_id: 7, project_id: 1, statuses: [10] } },
    };
    const { project_id, environment_id } = job;
    const created = await create({
      id: null,
      state: 1,
      name: 'Weekly',
      project_id,
      environment_id,
      ...fields,
    });
    expect(created).toMatchObject({
      ...fields,
      schedule: { ...fields.schedule, cron: '0 6 * * 1,5' },
      job_type: 'scheduled',
    });
  });

  test.each<[string, object, string]>([
    ['an unknown project', { project_id: 999 }, 'project_id: 999 is not a project of this account'],
    [
      'an unknown environment',
      { environment_id: 999 },
      'environment_id: 999 is not an environment of this account',
    ],
    [
      'a name of another project',
      { project_name: 'Billing' },
      'project_name: is not the name of project 1; send one of the two',
    ],
    ['another account', { account_id: 999 }, 'account_id: must be 1, as in the path'],
    ['a deleted state', { state: 2 }, 'state: must be one of 1, null'],
    ['no project', { project_id: null }, 'project_name: is required'],
    ['an invalid step', { execute_steps: [7] }, 'execute_steps.0: must be a string'],
    ['a text for a flag', { generate_docs: 'yes' }, 'generate_docs: must be a boolean'],
    [
      'an unknown type',
      { job_type: 'hourly' },
      'job_type: must be one of ci, scheduled, other, merge, adaptive, exposure_sync, null',
    ],
  ])('is a 400 that names the field for %s', async (_, fields, problem) => {
    const { project_id, environment_id } = job;
    const body = { name: 'Another', project_id, environment_id, ...fields };
    expect(problemsOf(await server.call('POST', '/jobs/', body))).toEqual({ status: 400, problems: problem });
  });
});

describe('a change of a job', () => {
  test('accepts the response of a GET, which changes nothing', async () => {
    const related = await get('?include_related=["project","environment","most_recent_run"]');
    const before = await get();
    const stored = () => server.database.prisma.job.findUnique({ where: { id: BigInt(job.id) } });
    const { status, json } = await update(related);
    expect({ status, after: json.data }).toEqual({ status: 200, after: before });
    expect(await stored()).toMatchObject({ definition: null, updatedAt: null });
    // The type is not set, so that it depends on the triggers.
    await update({ triggers: { schedule: true } });
    expect(await get()).toMatchObject({ job_type: 'scheduled' });
    expect(await stored()).toMatchObject({ updatedAt: expect.any(Date) });
    await update(before);
    expect(await get()).toMatchObject({ triggers: before.triggers, job_type: 'other' });
    await update({ triggers: null });
    expect(await stored()).toMatchObject({ definition: null });
  });

  test('sets a type that is not the default by the triggers of the same change', async () => {
    const type = 'other';
    const { json } = await update({ triggers: { schedule: true }, job_type: type });
    expect(json.data.job_type).toBe(type);
  });

  test('replaces the fields that it has and no others, and null stands for the default', async () => {
    await update({ execute_steps: ['dbt run'], triggers: { schedule: true }, settings: { threads: 8 } });
    await update({ triggers: { on_merge: true }, settings: null, name: 'Renamed' });
    expect(await get()).toMatchObject({
      name: 'Renamed',
      execute_steps: ['dbt run'],
      triggers: { schedule: false, on_merge: true },
      settings: { threads: 4, target_name: 'default' },
      job_type: 'merge',
    });
  });

  test('does not lose concurrent changes of other fields', async () => {
    const bodies = [{ execute_steps: ['dbt run'] }, { generate_docs: true }, { dbt_version: '1.9.0' }];
    await Promise.all(bodies.map(update));
    expect(await get()).toMatchObject(Object.assign({}, ...bodies));
  });

  test('moves the job by the id or by the name, whichever differs, and the next run has the new names', async () => {
    const other = await create({ name: 'x', project_name: 'Billing', environment_name: 'Staging' });
    expect((await startRun()).json.data).toMatchObject({ project_name: 'Analytics' });
    const moved = await update({ ...(await get()), project_id: other.project_id });
    expect(moved.json.data).toMatchObject({ project_name: 'Billing', environment_name: 'Production' });
    await update({ ...(await get()), environment_name: 'Staging', name: 'Moved' });
    expect((await startRun()).json.data).toMatchObject({
      job_name: 'Moved',
      project_id: other.project_id,
      project_name: 'Billing',
      environment_id: other.environment_id,
      environment_name: 'Staging',
    });
    const problem = await update({ project_id: job.project_id, project_name: 'Elsewhere' });
    expect(problemsOf(problem)).toEqual({
      status: 400,
      problems: `project_name: is not the name of project ${job.project_id}; send one of the two`,
    });
  });

  test('leaves cached callers and jobs valid unless the job is renamed, moved or deleted', async () => {
    const version = async () =>
      (await server.database.pool.query('SELECT version FROM cache_version')).rows[0].version;
    const before = await version();
    await update({ ...(await get()), execute_steps: ['dbt run'] });
    expect(await version()).toBe(before);
    await update({ name: 'Renamed' });
    expect(await version()).not.toBe(before);
  });

  test('requires the permission to create jobs, and a job of the account', async () => {
    const token = await server.tokenWith(['developer']);
    expect((await server.call('POST', path(), {}, token)).status).toBe(403);
    expect((await server.call('DELETE', path(), undefined, token)).status).toBe(403);
    const foreign = await server.createJob('x', (await server.otherAccount('team')).id);
    for (const id of [foreign.id, 999, 'x'])
      for (const method of ['POST', 'DELETE'])
        expect((await server.call(method, `/jobs/${id}`, {})).status).toBe(404);
    expect(problemsOf(await update({ id: 7 }))).toEqual({
      status: 400,
      problems: `id: must be ${job.id}, as in the path`,
    });
  });
});

describe('a deleted job', () => {
  test('is hidden from lists and new runs, but not from its runs', async () => {
    const { json: started } = await startRun();
    const { status, json } = await server.call('DELETE', path());
    expect({ status, json }).toMatchObject({
      status: 200,
      json: { data: { id: job.id, state: 2, webhooks: [] }, status: { code: 200, is_success: true } },
    });
    expect((await server.call('GET', path())).status).toBe(404);
    expect((await server.call('DELETE', path())).status).toBe(404);
    expect((await update({ name: 'x' })).status).toBe(404);
    const list = async (query: string) => (await server.call('GET', `/jobs/?${query}`)).json.data;
    expect(await list(`ids=${job.id}`)).toEqual([]);
    expect(await list(`ids=${job.id}&state=2`)).toMatchObject([{ id: job.id, state: 2 }]);
    expect(problemsOf(await startRun())).toEqual({
      status: 400,
      problems: `job_id: ${job.id} is not a job of this account`,
    });
    const finished = await server.call('POST', `/runs/${started.data.id}/finish/`, { status: 'success' });
    expect(finished.status).toBe(200);
    const run = await server.call('GET', `/runs/${started.data.id}/?include_related=["job","environment"]`);
    expect(run.json.data).toMatchObject({
      job: { id: job.id, state: 2, execute_steps: [] },
      environment: { name: 'Production' },
    });
  });

  test('is deleted by its state, too, as some clients do', async () => {
    expect((await update({ ...(await get()), state: 2 })).json.data.state).toBe(2);
    expect((await server.call('GET', path())).status).toBe(404);
  });

  test('does not count as one of the jobs that an account may have', async () => {
    const { prisma } = server.database;
    await prisma.job.updateMany({ data: { deletedAt: new Date() } });
    await prisma.job.createMany({
      data: Array.from({ length: 1_000 }, (_, index) => ({
        accountId: BigInt(server.accountId),
        name: `many ${index}`,
        projectId: BigInt(job.project_id),
        environmentId: BigInt(job.environment_id),
      })),
    });
    const { project_id, environment_id } = job;
    const body = { name: 'one more', project_id, environment_id };
    expect((await server.call('POST', '/jobs/', body)).status).toBe(409);
    const [last] = (await server.call('GET', '/jobs/?limit=1')).json.data;
    await server.call('DELETE', path(last.id));
    expect((await server.call('POST', '/jobs/', body)).status).toBe(201);
    await prisma.job.updateMany({ data: { deletedAt: new Date() } });
  });
});

describe('include_related of a job', () => {
  test('has the latest run and the latest that has ended, or null', async () => {
    const query = '?include_related=most_recent_run,most_recent_completed_run';
    expect(await get(query)).toMatchObject({ most_recent_run: null, most_recent_completed_run: null });
    const first = (await startRun()).json.data.id;
    await server.call('POST', `/runs/${first}/finish/`, { status: 'errored' });
    const second = (await startRun()).json.data.id;
    expect(await get(query)).toMatchObject({
      most_recent_run: { id: second, status_humanized: 'Running' },
      most_recent_completed_run: { id: first, status_humanized: 'Error' },
    });
  });
});
