import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { INVALID_TEXT_PROBLEM } from '@runhook/contract';
import { createJob } from '@runhook/database';
import { insertDelivery } from '../deliveries/delivery-rows.ts';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;

beforeAll(async () => {
  harness = await startHarness();
});

beforeEach(async () => {
  account = await harness.newAccount();
});

afterAll(() => harness.close());

const list = (query: string) =>
  harness.call('GET', account.path(`/subscriptions${query}`), { token: account.token });
const jobs = (query: string) =>
  harness.call('GET', `/api/v2/accounts/${account.id}/jobs/${query}`, { token: account.token });
const namesOf = ({ json }: { json: Json }) => json.data.map(({ name }: Json) => name);

describe('the list of subscriptions', () => {
  beforeEach(async () => {
    await harness.newSubscription(account, { name: 'Pager', description: 'Wakes 100% of us' });
    await harness.newSubscription(account, { name: 'Lake_House', client_url: 'https://pager.example.com/x' });
    await harness.newSubscription(account, { name: 'Chat', active: false });
    await harness.newSubscription(await harness.newAccount(), { name: 'Pager of somebody else' });
  });

  test.each<[string, string[]]>([
    ['pager', ['Lake_House', 'Pager']],
    ['WAKES', ['Pager']],
    ['example.com/x', ['Lake_House']],
    ['%', ['Pager']],
    ['e_h', ['Lake_House']],
    ['e%h', []],
    ['\\', []],
    ["'", []],
    ['', ['Chat', 'Lake_House', 'Pager']],
  ])('finds %p in the name, endpoint or description', async (search, names) => {
    const response = await list(`?search=${encodeURIComponent(search)}`);
    expect(namesOf(response)).toEqual(names);
    expect(response.json.extra.pagination).toEqual({ total_count: names.length, count: names.length });
  });

  test('filters by active, also together with a search and pages', async () => {
    expect(namesOf(await list('?active=true'))).toEqual(['Lake_House', 'Pager']);
    expect(namesOf(await list('?active=false'))).toEqual(['Chat']);
    const page = await list('?active=true&search=pager&limit=1&offset=1');
    expect(namesOf(page)).toEqual(['Pager']);
    expect(page.json.extra.pagination).toEqual({ total_count: 2, count: 1 });
  });

  test('rejects bytes that are not UTF-8, and reads a single percent sign', async () => {
    const { status, json } = await list('?search=%FF&active=%ed%a0%80');
    expect({ status, errors: json.status.errors }).toEqual({
      status: 400,
      errors: [
        { field: 'search', message: 'must be UTF-8, percent-encoded' },
        { field: 'active', message: 'must be UTF-8, percent-encoded' },
      ],
    });
    expect((await list('?search=100%')).status).toBe(200);
    expect((await jobs('?%FF=1')).json.status.errors).toEqual([
      { field: '\ufffd', message: 'must be UTF-8, percent-encoded' },
    ]);
  });

  test('rejects invalid filters with a 400 that names each of them', async () => {
    const { status, json } = await list(`?active=yes&search=${'x'.repeat(256)}&limit=0`);
    expect(status).toBe(400);
    expect(json.status.errors).toEqual([
      { field: 'limit', message: 'must be an integer between 1 and 100' },
      { field: 'active', message: 'must be true or false' },
      { field: 'search', message: 'must not be longer than 255 characters' },
    ]);
    expect((await list('?search=%00')).json.status.errors).toEqual([
      { field: 'search', message: INVALID_TEXT_PROBLEM },
    ]);
  });
});

describe('the list of jobs', () => {
  const newJob = async (name: string) => {
    const jobNames = { projectName: 'Analytics', environmentName: 'Production' };
    return (await createJob(harness.database.prisma, { accountId: account.id, name, ...jobNames })).id;
  };

  test('finds a part of the name or the start of the id', async () => {
    const nightly = await newJob('Nightly_build');
    const hourly = await newJob('Hourly 100%');
    expect(namesOf(await jobs('?search=NIGHT'))).toEqual(['Nightly_build']);
    expect(namesOf(await jobs('?search=%25'))).toEqual(['Hourly 100%']);
    expect(namesOf(await jobs('?search=y_b'))).toEqual(['Nightly_build']);
    expect(namesOf(await jobs(`?search=${nightly}`))).toContain('Nightly_build');
    const combined = await jobs(`?search=nightly&ids=${nightly},${hourly}`);
    expect(namesOf(combined)).toEqual(['Nightly_build']);
    expect(combined.json.extra.pagination.total_count).toBe(1);
  });

  test('finds jobs by their ids, but none of another account', async () => {
    const [one, , three] = [await newJob('One'), await newJob('Two'), await newJob('Three')];
    const otherJob = await harness.newJob(await harness.newAccount());
    const response = await jobs(`?ids=${one},${three},${otherJob},999999`);
    expect(namesOf(response)).toEqual(['Three', 'One']);
    expect(response.json.extra.pagination).toEqual({ total_count: 2, count: 2 });
  });

  test.each([
    ['', 'must be ids (digits) separated by commas'],
    ['1,x', 'must be ids (digits) separated by commas'],
    ['1,,2', 'must be ids (digits) separated by commas'],
    ['99999999999999999999', 'must be ids (digits) separated by commas'],
    [Array(101).fill('1').join(','), 'must not have more than 100 ids'],
  ])('rejects ids=%.12s with a 400 that states why', async (ids, message) => {
    const { status, json } = await jobs(`?ids=${ids}`);
    expect([status, json.status.errors]).toEqual([400, [{ field: 'ids', message }]]);
  });
});

describe('the errors of a response', () => {
  test('list each invalid field of a subscription with its problems', async () => {
    const body = {
      name: '',
      event_types: ['job.run.started', 'x'],
      client_url: 'ftp://x',
      job_ids: [987654],
    };
    const { status, json } = await harness.call('POST', account.path('/subscriptions'), {
      token: account.token,
      body,
    });
    expect(status).toBe(400);
    expect(json.status.errors.map(({ field }: Json) => field)).toEqual([
      'name',
      'event_types.1',
      'client_url',
    ]);
    for (const { field, message } of json.status.errors)
      expect([field, message]).toEqual([field, expect.stringMatching(/^(?:must|is|has) /)]);
    const unknownJob = await harness.call('POST', account.path('/subscriptions'), {
      token: account.token,
      body: { ...body, name: 'x', event_types: ['job.run.started'], client_url: 'https://example.com' },
    });
    expect(unknownJob.json.status.errors).toEqual([
      { field: 'job_ids', message: 'must be ids of jobs of the account; these are not: 987654' },
    ]);
  });

  test('are omitted when no field is invalid', async () => {
    const { json } = await harness.call('GET', account.path('/subscription/wsu_x'), { token: account.token });
    expect(json.status).not.toHaveProperty('errors');
  });
});

test('a list of failed or cancelled deliveries and a recovery of the same window have the same total', async () => {
  const { id } = await harness.newSubscription(account);
  const nowMs = Date.now();
  const insert = (ageMs: number, fields: object) =>
    insertDelivery(harness.database, {
      subscriptionId: id,
      accountId: account.id,
      eventTime: new Date(nowMs - ageMs),
      createdAt: new Date(nowMs - ageMs).toISOString(),
      completedAt: new Date(nowMs - ageMs + 1).toISOString(),
      ...fields,
    });
  const hour = 3_600_000;
  await insert(2 * hour, { status: 'failed' });
  await insert(2 * hour, { status: 'cancelled' });
  await insert(2 * hour, { status: 'delivered' });
  await insert(3 * hour, { status: 'failed' });
  await insert(5 * hour, { status: 'failed' });
  // An event with an id of six days ago, whose day is outside the window.
  await insert(2 * hour, { status: 'failed', eventTime: new Date(nowMs - 144 * hour) });
  const window = { since: `${nowMs - 3 * hour}000`, until: `${nowMs - hour}000` };
  for (const [status, count] of [
    ['failed', 3],
    ['cancelled', 1],
  ] as const) {
    const query = `?status=${status}&since=${window.since}&until=${window.until}&limit=1`;
    const { token } = account;
    const listResponse = await harness.call('GET', account.path(`/subscription/${id}/deliveries${query}`), {
      token,
    });
    const body = { ...window, status };
    const recoverResponse = await harness.call('POST', account.path(`/subscription/${id}/recover`), {
      token,
      body,
    });
    expect([status, listResponse.json.extra.pagination.total_count]).toEqual([status, count]);
    expect([status, recoverResponse.json.data.total_count]).toEqual([status, count]);
    await harness.database.pool.query(`UPDATE recoveries SET status = 'done'`);
  }
});
