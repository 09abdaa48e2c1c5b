import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { INVALID_TEXT_PROBLEM } from '@runhook/contract';
import { type RunsServer, startRunsServer } from '../runs/runs-server.ts';
import { V2_STATUS } from '../v2-status.ts';

const JOB = { name: 'Nightly', project_name: 'Analytics', environment_name: 'Production' };

let server: RunsServer;
beforeEach(async () => {
  server = await startRunsServer();
});
afterEach(() => server.close());

describe('POST …/jobs/', () => {
  test('creates the job with its project and environment', async () => {
    const { status, json } = await server.call('POST', '/jobs/', { id: '', ...JOB });
    expect(status).toBe(201);
    expect(json).toMatchObject({
      data: {
        id: 1,
        account_id: server.accountId,
        name: 'Nightly',
        project_id: 1,
        project_name: 'Analytics',
        environment_id: 1,
        environment_name: 'Production',
      },
      status: { code: 201, ...V2_STATUS },
    });
  });

  test('shares projects and environments of the same name, also between concurrent calls', async () => {
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        server.call('POST', '/jobs/', { ...JOB, name: `job ${index}` }),
      ),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(201));
    expect(new Set(responses.map(({ json }) => json.data.project_id)).size).toBe(1);
    expect(new Set(responses.map(({ json }) => json.data.environment_id)).size).toBe(1);
    expect(new Set(responses.map(({ json }) => json.data.id)).size).toBe(10);
  });

  test.each<[string, unknown, string[]]>([
    ['nothing', undefined, ['body: is required']],
    ['no object', [JOB], ['body: must be of type object']],
    ['no fields', {}, ['name: is required', 'project_name: is required', 'environment_name: is required']],
    ['an empty name', { ...JOB, name: '' }, ['name: is not allowed to be empty']],
    [
      'only spaces',
      { ...JOB, name: '  ', project_name: '\n' },
      ['name: must not be only spaces', 'project_name: must not be only spaces'],
    ],
    ['a number', { ...JOB, project_name: 7 }, ['project_name: must be a string']],
    ['null', { ...JOB, environment_name: null }, ['environment_name: must be a string']],
    [
      'a long name',
      { ...JOB, name: 'x'.repeat(256) },
      ['name: length must be less than or equal to 255 characters long'],
    ],
    [
      'invalid characters',
      { name: 'a\0b', project_name: 'cut \ud83d', environment_name: '\ufffe' },
      [
        `name: ${INVALID_TEXT_PROBLEM}`,
        `project_name: ${INVALID_TEXT_PROBLEM}`,
        `environment_name: ${INVALID_TEXT_PROBLEM}`,
      ],
    ],
  ])('rejects %s, names every invalid field and writes nothing', async (_, body, problems) => {
    const { status, json } = await server.call('POST', '/jobs/', body);
    expect({ status, problems: json.status.developer_message.split('\n') }).toEqual({
      status: 400,
      problems,
    });
    expect(await server.database.prisma.job.count()).toBe(0);
    expect(await server.database.prisma.project.count()).toBe(0);
  });

  test('requires job_runner or an admin permission set', async () => {
    for (const permissionSet of ['job_runner', 'admin', 'account_admin'] as const) {
      const token = await server.tokenWith([permissionSet]);
      expect((await server.call('POST', '/jobs/', JOB, token)).status).toBe(201);
    }
    for (const permissionSet of ['developer', 'member', 'read_only'] as const) {
      const token = await server.tokenWith([permissionSet]);
      expect((await server.call('POST', '/jobs/', JOB, token)).status).toBe(403);
    }
    expect(await server.database.prisma.job.count()).toBe(3);
  });
});

describe('GET …/jobs/', () => {
  test('lists the jobs of the account, newest first, in pages', async () => {
    for (const name of ['one', 'two', 'three']) await server.createJob(name);
    await server.createJob('of another account', (await server.otherAccount('team')).id);
    const { status, json } = await server.call(
      'GET',
      '/jobs?limit=2&offset=1',
      undefined,
      await server.tokenWith([]),
    );
    expect(status).toBe(200);
    const shared = {
      account_id: server.accountId,
      project_id: 1,
      project_name: 'Analytics',
      environment_id: 1,
      environment_name: 'Production',
    };
    expect(json).toMatchObject({
      data: [
        { id: 2, name: 'two', ...shared },
        { id: 1, name: 'one', ...shared },
      ],
      status: { code: 200, ...V2_STATUS },
      extra: { pagination: { total_count: 3, count: 2 }, filters: { offset: 1, limit: 2 } },
    });
  });

  test('returns an empty list for an account without jobs', async () => {
    const { json } = await server.call('GET', '/jobs/');
    expect(json).toMatchObject({
      data: [],
      status: { code: 200, ...V2_STATUS },
      extra: { pagination: { total_count: 0, count: 0 }, filters: { offset: 0, limit: 10 } },
    });
  });

  test('rejects invalid page parameters with a 400 that names both', async () => {
    const { status, json } = await server.call('GET', '/jobs/?limit=0&offset=-1');
    expect(status).toBe(400);
    expect(json.status.developer_message).toBe(
      'limit: must be an integer between 1 and 100\noffset: must be an integer of at least 0',
    );
  });

  test('rejects a token of another account', async () => {
    const { token } = await server.otherAccount('enterprise');
    expect((await server.call('GET', '/jobs/', undefined, token)).status).toBe(403);
  });
});
