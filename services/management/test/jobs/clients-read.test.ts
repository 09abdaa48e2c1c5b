import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

// Two projects share an environment, and another account has none of them.
let harness: Harness;
let account: TestAccount;
let otherAccount: TestAccount;
let jobs: Record<'nightly' | 'hourly' | 'weekly', Json>;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount({ plan: 'free' });
  otherAccount = await harness.newAccount({ plan: 'free' });
  await harness.newJob(otherAccount);
  const create = async (name: string, project_name: string, environment_name: string) =>
    (await call('POST', '/v2', '/jobs/', { name, project_name, environment_name })).json.data;
  jobs = {
    nightly: await create('Nightly', 'Analytics', 'Production'),
    hourly: await create('Hourly', 'Billing', 'Production'),
    weekly: await create('Weekly', 'Billing', 'Staging'),
  };
});
afterAll(() => harness.close());

const call = (method: string, version: '/v2' | '/v3', suffix: string, body?: unknown, of = account) =>
  harness.call(method, `/api${version}/accounts/${account.id}${suffix}`, { token: of.token, body });

async function listNames(
  suffix: string,
  version: '/v2' | '/v3' = '/v2',
): Promise<{ names: string; total: number }> {
  const { status, json } = await call('GET', version, suffix);
  if (status !== 200) throw new Error(JSON.stringify(json));
  const names = json.data.map(({ name, id }: Json) => name ?? id).join(' ');
  return { names, total: json.extra.pagination.total_count };
}

describe('an account', () => {
  test.each(['/v2', '/v3'] as const)('is returned by its id as in the list on %s', async (version) => {
    const { json } = await harness.call('GET', `/api${version}/accounts`, { token: account.token });
    for (const suffix of ['', '/']) {
      const response = await call('GET', version, suffix);
      expect(response).toMatchObject({ status: 200, json: { data: json.data[0], status: { code: 200 } } });
    }
    expect((await call('GET', version, '/', undefined, otherAccount)).status).toBe(403);
  });
});

describe('jobs', () => {
  test('are returned by id with the objects of include_related, in each format that clients send', async () => {
    const path = `/jobs/${jobs.hourly.id}/`;
    expect((await call('GET', '/v2', path)).json.data).toEqual(jobs.hourly);
    for (const related of [
      'include_related=[environment]',
      'include_related=["environment","project"]',
      "include_related=['environment']",
      'include_related=environment',
      'include_related=project,environment',
      'include_related=project&include_related=environment',
      'include_related=environment&order_by=-id',
    ]) {
      const { json } = await call('GET', '/v2', `${path}?${related}`);
      expect(json.data.environment).toMatchObject({
        id: jobs.hourly.environment_id,
        // The job's own project, although the environment was created with another project's job.
        project_id: jobs.hourly.project_id,
        name: 'Production',
      });
      if (related.includes('project')) expect(json.data.project).toMatchObject({ name: 'Billing' });
      else expect(json.data.project).toBeUndefined();
    }
    for (const query of ['include_related=', 'include_related=[]'])
      expect((await call('GET', '/v2', `${path}?${query}`)).json.data).toEqual(jobs.hourly);
    const { status, json } = await call('GET', '/v2', `${path}?include_related=["environment","account"]`);
    expect({ status, said: json.status.developer_message }).toEqual({
      status: 400,
      said: 'include_related: must have names of project, environment, most_recent_run, most_recent_completed_run only',
    });
    for (const id of ['999', 'x', '0', '1e0', '%00']) {
      const { status, json } = await call('GET', '/v2', `/jobs/${id}/`);
      expect({ id, status, said: json.status.user_message }).toEqual({ id, status: 404, said: 'Not found.' });
    }
  });

  test('are filtered by project and environment, and sorted', async () => {
    const { project_id: billing, environment_id: production } = jobs.hourly;
    const searchResults: [string, string][] = [
      ['', 'Weekly Hourly Nightly'],
      [`project_id=${billing}`, 'Weekly Hourly'],
      [`environment_id=${production}`, 'Hourly Nightly'],
      [`project_id=${billing}&environment_id=${production}`, 'Hourly'],
      ['order_by=name', 'Hourly Nightly Weekly'],
      ['order_by=-name', 'Weekly Nightly Hourly'],
      ['order_by=created_at&limit=2', 'Nightly Hourly'],
      ['project_id=999', ''],
      [`account_id=${account.id}`, 'Weekly Hourly Nightly'],
      ['name__icontains=LY', 'Weekly Hourly Nightly'],
      ['name__icontains=WEEK', 'Weekly'],
      ['name=Hourly', 'Hourly'],
      ['name=hourly', ''],
      [`project_id__in=[${billing}, 999]`, 'Weekly Hourly'],
      [`project_id__in=${billing}&environment_id=${production}`, 'Hourly'],
      [`environment_id__in=[${production}]`, 'Hourly Nightly'],
      [`id__in=[${jobs.nightly.id},${jobs.weekly.id}]`, 'Weekly Nightly'],
      [`ids=${jobs.nightly.id}`, 'Nightly'],
      ['state=1', 'Weekly Hourly Nightly'],
      ['state=2', ''],
      ['project_id=&project_id__in=[]&environment_id__in=&name=&state=&account_id=', 'Weekly Hourly Nightly'],
    ];
    for (const [query, names] of searchResults)
      expect([query, (await listNames(`/jobs?${query}`)).names]).toEqual([query, names]);
  });

  test.each([
    ['state=3', 'state: must be 1 (not deleted) or 2 (deleted)'],
    ['account_id=999', /^account_id: must be \d+, the account of the path$/],
    ['project_id__in=[x]', 'project_id__in: must be ids (digits), separated by commas'],
    ['triggers=x', 'triggers: is not a parameter of this call'],
  ])('reject the filter %s', async (query, problem) => {
    const { status, json } = await call('GET', '/v2', `/jobs/?${query}`);
    expect(status).toBe(400);
    expect(json.status.developer_message).toMatch(problem);
  });
});

describe('lists of projects and environments', () => {
  test.each(['/v2', '/v3'] as const)(
    'on %s contain those that the jobs of the account name',
    async (version) => {
      const created = { state: 1, account_id: account.id, created_at: expect.any(String) };
      const projects = await call('GET', version, '/projects/?order_by=name&include_related=[]');
      expect(projects.json.data).toMatchObject([
        { id: jobs.nightly.project_id, name: 'Analytics', description: '', ...created },
        { id: jobs.hourly.project_id, name: 'Billing', description: '', ...created },
      ]);
      expect(projects.json.extra.pagination).toEqual({ total_count: 2, count: 2 });
      expect(await listNames('/projects?name__icontains=BILL', version)).toEqual({
        names: 'Billing',
        total: 1,
      });
      expect((await listNames('/projects?limit=1&offset=1', version)).names).toBe('Analytics');
      const { project_id: billing } = jobs.hourly;
      const searchResults: [string, string][] = [
        ['projects?name=Billing', 'Billing'],
        [`projects?pk__in=[${billing}]&account_id=${account.id}&state=1`, 'Billing'],
        ['projects?id__in=999', ''],
        ['projects?state=2', ''],
        ['environments?name=Staging', 'Staging'],
        ['environments?type=deployment', 'Staging Production'],
        ['environments?type=development', ''],
        ['environments?dbt_version__in=["latest","1.9.0"]', 'Staging Production'],
        ['environments?dbt_version__in=["1.9.0"]', ''],
        ['environments?dbt_version__in=[]&type=', 'Staging Production'],
        [`environments?project_id__in=[${jobs.nightly.project_id}]`, 'Production'],
      ];
      for (const [query, names] of searchResults)
        expect([query, (await listNames(`/${query}`, version)).names]).toEqual([query, names]);
      const related = await call(
        'GET',
        version,
        `/projects/${billing}?include_related=['environments','repository']`,
      );
      expect(related.json.data).toMatchObject({
        connection: null,
        repository: null,
        environments: [{ name: 'Production', project_id: billing }, { name: 'Staging' }],
      });
      const staging = await call('GET', version, '/environments?name=Staging&include_related=project');
      expect(staging.json.data).toMatchObject([{ dbt_version: 'latest', project: { name: 'Billing' } }]);
      expect((await call('GET', version, '/projects?include_related=groups')).status).toBe(400);
      const environments = await call('GET', version, '/environments/?order_by=id');
      expect(environments.json.data).toMatchObject([
        {
          id: jobs.nightly.environment_id,
          project_id: jobs.nightly.project_id,
          name: 'Production',
          ...created,
        },
        { id: jobs.weekly.environment_id, project_id: jobs.weekly.project_id, name: 'Staging', ...created },
      ]);
      const [project] = projects.json.data;
      expect((await call('GET', version, `/projects/${project.id}/`)).json.data).toEqual(project);
      const [environment] = environments.json.data;
      expect((await call('GET', version, `/environments/${environment.id}/`)).json.data).toEqual(environment);
      expect((await call('GET', version, '/projects/999/')).status).toBe(404);
      expect((await call('GET', version, '/environments/x/')).status).toBe(404);
      expect((await call('GET', version, '/projects', undefined, otherAccount)).status).toBe(403);
      expect(
        (
          await harness.call('GET', `/api${version}/accounts/${otherAccount.id}/projects/`, {
            token: otherAccount.token,
          })
        ).json.extra.pagination.total_count,
      ).toBe(1);
    },
  );

  test('show a shared environment with the project that was requested', async () => {
    const { project_id: billing, environment_id: production } = jobs.hourly;
    const shared = { id: production, name: 'Production', project_id: billing };
    const nested = `/projects/${billing}/environments/`;
    expect((await call('GET', '/v3', `${nested}${production}/`)).json.data).toMatchObject(shared);
    for (const suffix of [`${nested}?order_by=id`, `/environments/?project_id=${billing}&order_by=id`])
      expect((await call('GET', '/v3', suffix)).json.data).toMatchObject([shared, { name: 'Staging' }]);
    const { project_id: analytics } = jobs.nightly;
    expect(await listNames(`/projects/${analytics}/environments`, '/v3')).toEqual({
      names: 'Production',
      total: 1,
    });
    const otherProjectPath = `/projects/${analytics}/environments/${jobs.weekly.environment_id}`;
    expect((await call('GET', '/v3', otherProjectPath)).status).toBe(404);
    expect((await call('GET', '/v3', '/projects/999/environments')).status).toBe(404);
  });
});

test('the environment variables of a job are none, for clients that ask', async () => {
  const path = `/projects/${jobs.hourly.project_id}/environment-variables/job`;
  const { status, json } = await call('GET', '/v3', `${path}/?job_definition_id=${jobs.hourly.id}`);
  expect({ status, data: json.data }).toEqual({ status: 200, data: {} });
  expect((await call('GET', '/v3', '/projects/999/environment-variables/job')).status).toBe(404);
});

describe('the list of runs', () => {
  beforeAll(async () => {
    for (const [run_id, job] of [
      [30, jobs.nightly],
      [10, jobs.hourly],
      [20, jobs.weekly],
    ] as const) {
      const body = {
        run_id,
        job_id: job.id,
        engine_version: '1.9.0',
        started_at: `2026-01-0${run_id / 10}T00:00:00Z`,
      };
      expect((await call('POST', '/v2', '/runs/', body)).json.data.job_definition_id).toBe(job.id);
    }
    await call('POST', '/v2', '/runs/20/finish', { status: 'errored', finished_at: '2026-01-05T00:00:00Z' });
    await call('POST', '/v2', '/runs/30/finish', { status: 'success', finished_at: '2026-01-04T00:00:00Z' });
  });

  test('filters and sorts by the parameters of other clients and has the job’s id under both names', async () => {
    const { id, project_id: billing, environment_id: production } = jobs.hourly;
    const searchResults: [string, string][] = [
      ['', '20 10 30'],
      [`job_definition_id=${id}`, '10'],
      [`job_definition_id=${id}&job_id=${jobs.nightly.id}`, ''],
      [`project_id=${billing}`, '20 10'],
      [`environment_id=${production}`, '10 30'],
      ['status=3', '10'],
      ['status=Success', '30'],
      ['status=20&include_related=["job","trigger"]', '20'],
      ['order_by=id', '10 20 30'],
      ['order_by=-id&limit=1', '30'],
      ['order_by=created_at', '30 10 20'],
      ['order_by=-started_at', '30 20 10'],
      ['order_by=finished_at', '30 20 10'],
      ['order_by=-finished_at&search=nightly', '30'],
    ];
    for (const [query, ids] of searchResults)
      expect([query, (await listNames(`/runs?${query}`)).names]).toEqual([query, ids]);
    const { json } = await call('GET', '/v2', '/runs/10');
    expect([json.data.job_id, json.data.job_definition_id]).toEqual([id, id]);
  });

  test.each([
    [
      'status=7',
      'status: must be one of Queued (1), Starting (2), Running (3), Success (10), Errored (20), Canceled (30)',
    ],
    [
      'order_by=cost',
      'order_by: must be one of id, created_at, started_at, finished_at, optionally with a leading minus',
    ],
    ['job_definition_id=x', 'job_definition_id: must be an integer of at least 1'],
    [
      'trigger_id=1&status_in=3',
      'trigger_id: is not a parameter of this call\nstatus_in: is not a parameter of this call',
    ],
  ])('rejects %s with a 400', async (query, problem) => {
    const { status, json } = await call('GET', '/v2', `/runs?${query}`);
    expect({ status, problem: json.status.developer_message }).toEqual({ status: 400, problem });
  });
});
