import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, type EventType } from '@runhook/contract';
import { createJob, ensureDayPartitions } from '@runhook/database';
import { updateAccount } from '../../src/identity/administration.ts';
import {
  type Harness,
  type Json,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
  type TestUser,
} from '../harness.ts';
import { insertDelivery } from './delivery-rows.ts';

let harness: Harness;
let account: TestAccount;
let ada: TestUser;
let bob: TestUser;
let reader: string;
let job: { id: number; project: number; environment: number };
let otherJob: { id: number; project: number; environment: number };
/** Ids by name. */
const webhooks = new Map<string, string>();

beforeAll(async () => {
  harness = await startHarness();
  await ensureDayPartitions(harness.database.pool);
  account = await harness.newAccount();
  ada = await harness.newUser(account, 'developer', ['admin']);
  bob = await harness.newUser(account, 'developer', ['admin']);
  reader = await harness.newToken(account, ['member']);
  job = await newJob('Daily', 'Analytics', 'Production');
  otherJob = await newJob('Weekly', 'Finance', 'Staging');
});

afterAll(() => harness.close());

async function newJob(name: string, projectName: string, environmentName: string) {
  const { prisma } = harness.database;
  const { id } = await createJob(prisma, { accountId: account.id, name, projectName, environmentName });
  const row = await prisma.job.findUniqueOrThrow({ where: { id } });
  return { id, project: Number(row.projectId), environment: Number(row.environmentId) };
}

const fieldsOf = (name: string, fields: object) => ({
  ...SUBSCRIPTION_FIELDS,
  event_types: EVENT_TYPES,
  name,
  ...fields,
});

async function create(name: string, fields: object = {}): Promise<void> {
  const body = fieldsOf(name, fields);
  const { json } = await harness.call('POST', account.path('/subscriptions'), { token: ada.apiKey, body });
  webhooks.set(name, json.data.id);
}

async function change(user: TestUser, name: string, fields: object): Promise<void> {
  const path = account.path(`/subscription/${webhooks.get(name)}`);
  const body = fieldsOf(name, fields);
  expect((await harness.call('PUT', path, { token: user.apiKey, body })).status).toBe(200);
}

const updateRow = (name: string, columns: string) =>
  harness.database.pool.query(`UPDATE subscriptions SET ${columns} WHERE id = $1`, [webhooks.get(name)]);

/** Reports a successful run, with the current time of the database for each event. */
async function reportRun(runId: number): Promise<void> {
  const report = async (path: string, body: object = {}) => {
    const url = `/api/v2/accounts/${account.id}/runs/${path}`;
    expect((await harness.call('POST', url, { token: account.token, body })).status).toBeLessThan(300);
  };
  await report('', { job_id: job.id, run_id: runId, engine_version: '1.9' });
  await report(`${runId}/finish/`, { status: 'success' });
  await report(`${runId}/artifacts/`);
  const { pool } = harness.database;
  await pool.query('DELETE FROM undispatched_events');
  await pool.query(
    `UPDATE runs SET finished_at = clock_timestamp(), artifacts_ingested_at = clock_timestamp() WHERE id = $1`,
    [runId],
  );
}

async function notify(name: string, runId: number, eventTypes: EventType[]): Promise<void> {
  const key = { accountId: account.id, subscriptionId: webhooks.get(name) ?? '', runId };
  const createdAt = new Date().toISOString();
  for (const eventType of eventTypes)
    await insertDelivery(harness.database, { ...key, eventType, createdAt });
}

/** Makes the deliveries of a run those that a recovery has just inserted. */
async function recover(runId: number): Promise<void> {
  await harness.database.pool.query(
    `UPDATE deliveries SET recovery_id = 'wrc_1', created_at = now() WHERE run_id = $1`,
    [runId],
  );
}

const read = (runId: number | string, query = 'limit=100') =>
  harness.call('GET', account.path(`/run/${runId}/unnotified?${query}`), { token: reader });

const TIME = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z/g;
const AN_INSTANT = expect.stringMatching(/^\d{16}$/);

test('a run while the plan had no webhooks is explained by the plan of that time', async () => {
  await create('Before the upgrade');
  const { pool, prisma } = harness.database;
  await updateAccount(prisma, account.id, { plan: 'free' });
  await reportRun(1);
  const rejected = await harness.call('GET', account.path('/subscriptions'), { token: reader });
  expect(rejected.status).toBe(403);
  const now = (await read(1)).json.data;
  await updateAccount(prisma, account.id, { plan: 'enterprise' });
  for (const data of [now, (await read(1)).json.data]) {
    expect(data).toEqual([
      {
        subscription_id: webhooks.get('Before the upgrade'),
        webhook_name: 'Before the upgrade',
        reason: 'plan',
        message: expect.stringMatching(
          /^The account's plan did not include webhooks: it was changed at .+Z by an operator\.$/,
        ),
        since: AN_INSTANT,
        by: 'an operator',
        changed_at: null,
        changed_by: null,
        events: [
          { event_type: 'job.run.started', reason: 'plan' },
          { event_type: 'job.run.completed', reason: 'plan' },
        ],
        notified_event_types: [],
      },
    ]);
  }
  await pool.query('UPDATE subscriptions SET deleted_at = now() WHERE account_id = $1', [account.id]);
  expect((await read(1)).json.data).toEqual([]);
});

/** Webhooks by the reason that is expected: name, fields, reason and message; T is a time. */
const CASES: [name: string, fields: () => object, reason: string, message: string][] = [
  ...[1, 2, 3].map((n): (typeof CASES)[number] => [
    `Type ${n}`,
    () => ({ event_types: ['job.run.errored'] }),
    'event_type',
    'Its event types do not include job.run.started and job.run.completed.',
  ]),
  ...[1, 2, 3].map((n): (typeof CASES)[number] => [
    `Job ${n}`,
    () => ({ job_ids: [otherJob.id] }),
    'job',
    'Its jobs do not include Daily (JOB).',
  ]),
  ...[1, 2, 3].map((n): (typeof CASES)[number] => [
    `Status ${n}`,
    () => ({ event_types: ['job.run.errored', 'job.run.completed'], filters: { run_statuses: [20] } }),
    'run_status',
    'Its filters do not include the run status of job.run.completed: 10 (Success).',
  ]),
  ...[1, 2, 3].map((n): (typeof CASES)[number] => [
    `Environment ${n}`,
    () => ({ filters: { environment_ids: [otherJob.environment] } }),
    'environment',
    'Its filters do not include the environment Production (ENVIRONMENT).',
  ]),
  ...[1, 2, 3].map((n): (typeof CASES)[number] => [
    `Project ${n}`,
    () => ({ filters: { environment_ids: [job.environment], project_ids: [otherJob.project] } }),
    'project',
    'Its filters do not include the project Analytics (PROJECT).',
  ]),
  ['Off 1', () => ({}), 'inactive', 'It is off since T by ADA.'],
  ['Off 2', () => ({ event_types: ['job.run.errored'] }), 'inactive', 'It is off since T by ADA.'],
  ['Off by the service', () => ({}), 'inactive', 'It is off since T by Runhook.'],
  ['Off after the event', () => ({}), 'inactive', 'It is off since T by BOB.'],
  ['Created inactive', () => ({ active: false }), 'inactive', 'It is off since T by ADA.'],
  ['On since 1', () => ({}), 'inactive', 'It was off since T by ADA. It was changed at T by BOB.'],
  ['On since 2', () => ({}), 'inactive', 'It was off since T by ADA. It was changed at T by BOB.'],
  [
    'Wider since 1',
    () => ({ event_types: ['job.run.errored'] }),
    'changed',
    'It matches job.run.started and job.run.completed now. It was changed at T by ADA.',
  ],
  [
    'Wider since 2',
    () => ({ filters: { run_statuses: [20] } }),
    'changed',
    'It matches job.run.started and job.run.completed now. It was changed at T by BOB.',
  ],
  ['Other job since', () => ({}), 'job', 'Its jobs do not include Daily (JOB). It was changed at T by BOB.'],
  ['Later 1', () => ({}), 'created_later', 'It was created later, at T by ADA.'],
  ['Later 2', () => ({ job_ids: [otherJob.id] }), 'created_later', 'It was created later, at T by ADA.'],
  ['Feed', () => ({}), 'feed_only', 'It has no endpoint: its consumer reads the events from the feed.'],
  [
    'Without a known reason',
    () => ({}),
    'unknown',
    'It matches job.run.started and job.run.completed now, and the audit log has no change of it since.',
  ],
  [
    'Partly',
    () => ({ event_types: ['job.run.completed'] }),
    'event_type',
    'Its event types do not include job.run.started.',
  ],
];

describe('a run of which 30 webhooks did not hear', () => {
  const RUN = 2;

  beforeAll(async () => {
    // The plan of the first test is no reason: the upgrade precedes the run.
    for (const [name, fields] of CASES) if (!name.startsWith('Later')) await create(name, fields());
    for (const name of ['Notified 1', 'Notified 2', 'Deleted']) await create(name);
    for (const name of ['Off 1', 'Off 2', 'On since 1', 'On since 2'])
      await change(ada, name, {
        active: false,
        ...(name === 'Off 2' && { event_types: ['job.run.errored'] }),
      });
    await updateRow('Off by the service', `active = false, deactivate_reason = 'It failed.'`);
    await updateRow('Feed', `client_url = ''`);
    await reportRun(RUN);
    for (const name of ['Notified 1', 'Notified 2'])
      await notify(name, RUN, ['job.run.started', 'job.run.completed']);
    await notify('Partly', RUN, ['job.run.completed']);
    for (const name of ['On since 1', 'On since 2']) await change(bob, name, { active: true });
    await change(ada, 'Wider since 1', {});
    await change(bob, 'Wider since 2', { filters: null });
    await change(bob, 'Other job since', { job_ids: [otherJob.id] });
    await change(bob, 'Off after the event', { active: false });
    await updateRow('Deleted', 'deleted_at = now()');
    for (const [name, fields] of CASES) if (name.startsWith('Later')) await create(name, fields());
    await recover(RUN);
  });

  test('each has the reason and a sentence, and those that heard and the deleted one are omitted', async () => {
    const { status, json } = await read(RUN);
    expect(status).toBe(200);
    const found = json.data.map(({ webhook_name, reason, message }: Json) => [
      webhook_name,
      reason,
      message
        .replaceAll(TIME, 'T')
        .replaceAll(ada.email, 'ADA')
        .replaceAll(bob.email, 'BOB')
        .replace(/Daily \(\d+\)/, 'Daily (JOB)')
        .replace(/Production \(\d+\)/, 'Production (ENVIRONMENT)')
        .replace(/Analytics \(\d+\)/, 'Analytics (PROJECT)'),
    ]);
    const expected = CASES.map(([name, , reason, message]) => [name, reason, message]);
    expect(found.sort()).toEqual(expected.sort());
    expect(json.extra.pagination).toEqual({ count: CASES.length, total_count: CASES.length });
    expect(CASES.length).toBe(30);
  });

  test('the fields name the events, and who changed what and when', async () => {
    const one = async (name: string) =>
      (await read(RUN, `webhook_id=${webhooks.get(name)}`)).json.data.map(
        ({ webhook_name: _name, subscription_id: _id, message: _message, ...rest }: Json) => rest,
      );
    expect(await one('On since 1')).toEqual([
      {
        reason: 'inactive',
        since: AN_INSTANT,
        by: ada.email,
        changed_at: AN_INSTANT,
        changed_by: bob.email,
        events: [
          { event_type: 'job.run.started', reason: 'inactive' },
          { event_type: 'job.run.completed', reason: 'inactive' },
        ],
        notified_event_types: [],
      },
    ]);
    expect(await one('Partly')).toEqual([
      {
        reason: 'event_type',
        since: null,
        by: null,
        changed_at: null,
        changed_by: null,
        events: [{ event_type: 'job.run.started', reason: 'event_type' }],
        notified_event_types: ['job.run.completed'],
      },
    ]);
    expect(await one('Notified 1')).toEqual([]);
  });

  test('can be limited to one event, in which case another may have been closer', async () => {
    const { json } = await read(RUN, `event_type=job.run.started&webhook_id=${webhooks.get('Status 1')}`);
    expect(json.data).toMatchObject([
      { reason: 'event_type', events: [{ event_type: 'job.run.started', reason: 'event_type' }] },
    ]);
  });

  test('are paged, newest first', async () => {
    const ids = async (query: string) =>
      (await read(RUN, query)).json.data.map(({ subscription_id }: Json) => subscription_id);
    const all = await ids('limit=100');
    expect(all[0]).toBe(webhooks.get('Later 2'));
    expect(await ids('limit=20&offset=20')).toEqual(all.slice(20));
    expect(await ids('limit=20&offset=40')).toEqual([]);
  });

  test('an event that is not matched with webhooks yet is not explained', async () => {
    await harness.call('POST', `/api/v2/accounts/${account.id}/runs/`, {
      token: account.token,
      body: { job_id: job.id, run_id: 3, engine_version: '1.9' },
    });
    expect((await read(3)).json.data).toEqual([]);
  });

  test('a run that is no longer on record, but in the log, has none', async () => {
    await notify('Notified 1', 4, ['job.run.completed']);
    expect(await read(4)).toMatchObject({ status: 200, json: { data: [] } });
  });

  test.each([
    ['an unknown run', '4711', '', 404],
    ['a run of another spelling', 'abc', '', 404],
    ['an invalid webhook', '2', 'webhook_id=7', 400],
    ['an unknown event type', '2', 'event_type=job.run.paused', 400],
  ])('%s is rejected', async (_case, runId, query, status) => {
    expect((await read(runId, query)).status).toBe(status);
  });
});
