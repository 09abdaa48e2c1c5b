import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, IdSet } from '@runhook/contract';
import { createJob } from '@runhook/database';
import { countMatches } from '../../src/deliveries/preview.ts';
import { failure, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let daily: { id: number; project: bigint; environment: bigint };
let weekly: typeof daily;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
  daily = await newJob('Daily', 'Analytics', 'Production');
  weekly = await newJob('Weekly', 'Finance', 'Production');
  await report(daily.id, 1, 'success');
  await report(daily.id, 2, 'errored');
  await report(weekly.id, 3, 'errored');
  await report(weekly.id, 4, null);
  await report(weekly.id, 5, 'success');
  await harness.database.pool.query(
    `UPDATE runs SET created_at = now() - interval '7 days 1 minute' WHERE account_id = $1 AND id = 5`,
    [account.id],
  );
  await report(await harness.newJob(await harness.newAccount()), 1, null);
});

afterAll(() => harness.close());

async function newJob(name: string, projectName: string, environmentName: string) {
  const { prisma } = harness.database;
  const { id } = await createJob(prisma, { accountId: account.id, name, projectName, environmentName });
  const row = await prisma.job.findUniqueOrThrow({ where: { id } });
  return { id, project: row.projectId, environment: row.environmentId };
}

async function report(jobId: number, runId: number, status: 'success' | 'errored' | null): Promise<void> {
  const post = (path: string, body: object = {}) =>
    harness.call('POST', `/api/v2/accounts/${account.id}/runs/${path}`, { token: account.token, body });
  await post('', { job_id: jobId, run_id: runId, engine_version: '1.9' });
  if (status === null) return;
  await post(`${runId}/finish/`, { status });
  await post(`${runId}/artifacts/`);
}

const preview = (query: string) =>
  harness.call('GET', account.path(`/preview?${query}`), { token: account.token });

describe('the preview of a webhook', () => {
  test.each([
    ['everything by default', () => '', 9],
    ['its event types', () => 'event_types=job.run.completed,job.run.errored', 5],
    ['its jobs', () => `job_ids=${daily.id}`, 5],
    ['several jobs', () => `job_ids=${daily.id},${weekly.id}`, 9],
    ['no job of the account', () => 'job_ids=4711', 0],
    ['the status of each event', () => 'run_statuses=3', 4],
    ['failures', () => 'event_types=job.run.completed&run_statuses=20', 2],
    ['successes', () => 'run_statuses=10', 1],
    ['a project', () => `project_ids=${weekly.project}&event_types=job.run.errored`, 1],
    ['an environment', () => `environment_ids=${daily.environment}`, 9],
    ['a job in another project', () => `job_ids=${daily.id}&project_ids=${weekly.project}`, 0],
    ['empty filters', () => 'job_ids=&run_statuses=&environment_ids=&project_ids=', 9],
  ])('counts %s among the events of the last seven days', async (_case, query, matched_count) => {
    const { status, json } = await preview(query());
    expect(status).toBe(200);
    expect(json.data).toEqual({
      matched_count,
      total_count: 9,
      since: expect.any(String),
      until: expect.any(String),
      is_complete: true,
      lowest_rate_limit: matched_count === 0 ? 0 : 0.001,
    });
    expect(Number(json.data.until) - Number(json.data.since)).toBe(7 * 86_400_000_000);
  });

  test.each([
    [
      'event_types=job.run.errored&run_statuses=3,10',
      'run_statuses match no event: the runs of job.run.errored have the status 20, not 3 or 10',
    ],
    [
      'run_statuses=30',
      'run_statuses must be one or more of 3, 10, 20, separated by commas, without repeats',
    ],
    ['project_ids=a', 'project_ids must be up to 1000 ids (digits), separated by commas'],
  ])('rejects %s', async (query, message) => {
    const { status, json } = await preview(query);
    expect(status).toBe(400);
    expect(json).toEqual(failure(400, `Invalid request: ${message}.`, message.replace(' ', ': ')));
  });

  test('stops at a limit of runs, and says where', async () => {
    const { pool } = harness.database;
    const { rows } = await pool.query(
      `SELECT (extract(epoch FROM created_at) * 1000000)::bigint::text AS at FROM runs
       WHERE account_id = $1 AND id = 3`,
      [account.id],
    );
    const everything = { active: true, eventTypes: EVENT_TYPES, jobIds: new IdSet([]), filters: null };
    const untilMs = Date.now() + 60_000;
    expect(
      await countMatches(pool, account.id, everything, { untilMs, pendingMax: 100, runsMax: 2 }),
    ).toEqual({
      matched_count: 4,
      total_count: 4,
      since: rows[0].at,
      until: String(untilMs * 1_000),
      is_complete: false,
      // Four events in the minute since then.
      lowest_rate_limit: expect.closeTo(4 / ((untilMs * 1_000 - rows[0].at) / 1_000_000), 2),
    });
  });

  test('needs webhooks in the plan, and no permission to change them', async () => {
    const member = await harness.newToken(account, ['member']);
    const call = (of: TestAccount, token: string) => harness.call('GET', of.path('/preview'), { token });
    expect((await call(account, member)).status).toBe(200);
    const free = await harness.newAccount({ plan: 'free' });
    expect((await call(free, free.token)).status).toBe(403);
  });
});
