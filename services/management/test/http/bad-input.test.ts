import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createId } from '@runhook/contract';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let token: string;
let subscriptionId: string;
let projectId: number;

beforeAll(async () => {
  harness = await startHarness();
  account = await harness.newAccount();
  token = account.token;
  subscriptionId = (await harness.newSubscription(account)).id;
  const jobId = await harness.newJob(account);
  const job = await harness.call('GET', `/api/v2/accounts/${account.id}/jobs/${jobId}`, { token });
  projectId = job.json.data.project_id;
});

afterAll(() => harness.close());

/** Sends the fields to the create and to the update; both must name each invalid field on a line and write nothing. */
async function expectRejected(fields: unknown, ...lines: (string | RegExp)[]): Promise<void> {
  const countsBefore = await harness.rowCounts();
  const storedBefore = await harness.call('GET', account.path(`/subscription/${subscriptionId}`), { token });
  for (const [method, path] of [
    ['POST', '/subscriptions'],
    ['PUT', `/subscription/${subscriptionId}`],
  ] as const) {
    const { status, json } = await harness.call(method, account.path(path), { token, body: fields });
    const messages = json.status.developer_message.split('\n');
    expect({ status, messages }).toEqual({
      status: 400,
      messages: lines.map((line) => (typeof line === 'string' ? line : expect.stringMatching(line))),
    });
    expect(json).toEqual(
      failure(400, expect.stringMatching(/^Invalid request: .*\.$/s) as never, messages.join('\n')),
    );
  }
  expect(await harness.rowCounts()).toEqual(countsBefore);
  const storedAfter = await harness.call('GET', account.path(`/subscription/${subscriptionId}`), { token });
  expect(storedAfter.json).toEqual(storedBefore.json);
}

const withField = (field: object) => ({ ...SUBSCRIPTION_FIELDS, ...field });

describe('a create or update of a subscription is rejected with a 400', () => {
  test.each([
    ['name', 5],
    ['name', null],
    ['name', ''],
    ['name', ' \t '],
    ['name', ['x']],
    ['name', 'x'.repeat(256)],
    ['name', 'a\0b'],
    ['description', 5],
    ['description', {}],
    ['description', 'x'.repeat(2_001)],
    ['event_types', 'job.run.started'],
    ['event_types', []],
    ['event_types', null],
    ['event_types', {}],
    ['job_ids', 'x'],
    ['job_ids', {}],
    ['job_ids', true],
    ['job_ids', [1.5]],
    ['job_ids', [-1]],
    ['job_ids', [null]],
    ['job_ids', Array.from({ length: 1_001 }, (_, index) => index + 1)],
    ['client_url', 5],
    ['client_url', null],
    ['client_url', '/hooks'],
    ['client_url', 'receiver.example.com/hooks'],
    ['client_url', 'ftp://receiver.example.com/'],
    ['client_url', 'https://user:password@receiver.example.com/'],
    ['client_url', 'http://127.0.0.1/'],
    ['client_url', 'http://localhost:3000/'],
    ['client_url', 'http://[::1]/'],
    ['client_url', 'http://169.254.169.254/latest/meta-data'],
    ['client_url', 'http://0x7f.1/'],
    ['client_url', `https://receiver.example.com/${'x'.repeat(2_048)}`],
    ['active', 'true'],
    ['active', 1],
    ['active', null],
  ])('that names the invalid field %s: %j', async (field, value) => {
    await expectRejected(withField({ [field]: value }), new RegExp(`^${field}: `));
  });

  test('for an unknown or repeated event type', async () => {
    await expectRejected(
      withField({ event_types: ['job.run.started', 'job.run.deleted'] }),
      /^event_types\.1: /,
    );
    await expectRejected(
      withField({ event_types: ['job.run.started', 'job.run.started'] }),
      /^event_types\.1: /,
    );
    await expectRejected(
      withField({ event_types: [5] }),
      /^event_types\.0: must be one of .*; must be a string$/,
    );
  });

  test('that names missing fields', async () => {
    await expectRejected({}, 'name: is required', 'event_types: is required', 'client_url: is required');
  });

  test('with one line for each of several invalid fields', async () => {
    const fields = withField({ name: 5, client_url: '/x', active: 'yes' });
    await expectRejected(
      fields,
      /^name: /,
      'client_url: must be an absolute http or https URL',
      'active: must be a boolean',
    );
  });

  test('for a JSON body that is not an object', async () => {
    for (const body of ['5', 'null', '"text"', '[]', 'true']) await expectRejected(body, /^body: /);
  });

  test('that lists jobs that the account does not have, whether or not another account has them', async () => {
    const ownJob = await harness.newJob(account);
    const foreign = await harness.newJob(await harness.newAccount());
    const line = `job_ids: must be ids of jobs of the account; these are not: ${foreign}, 999999999`;
    await expectRejected(withField({ job_ids: [ownJob, foreign, 999_999_999] }), line);
    await expectRejected(
      withField({ job_ids: [9_007_199_254_740_991] }),
      'job_ids: must be ids of jobs of the account; these are not: 9007199254740991',
    );
  });
});

describe('a 404 is returned and nothing written', () => {
  test('for a malformed or unknown id of a subscription, or one of another account', async () => {
    const foreign = await harness.newSubscription(await harness.newAccount());
    const countsBefore = await harness.rowCounts();
    const ids = [
      'x',
      'wsu_x',
      '1',
      '%00',
      subscriptionId.toLowerCase(),
      createId('subscription'),
      foreign.id,
    ];
    for (const id of [...ids, createId('event')]) {
      for (const [method, suffix] of [
        ['GET', ''],
        ['PUT', ''],
        ['DELETE', ''],
        ['GET', '/test'],
        ['GET', '/deliveries'],
        ['GET', `/delivery/${createId('delivery')}`],
        ['POST', `/delivery/${createId('delivery')}/redeliver`],
        ['POST', '/recover'],
        ['GET', `/recovery/${createId('recovery')}`],
      ] as const) {
        const body = method === 'PUT' ? { body: SUBSCRIPTION_FIELDS } : {};
        const response = await harness.call(method, account.path(`/subscription/${id}${suffix}`), {
          token,
          ...body,
        });
        expect(response).toMatchObject({ status: 404, json: failure(404, 'Webhook not found.') });
      }
    }
    expect(await harness.rowCounts()).toEqual(countsBefore);
    const { rows } = await harness.database.pool.query(
      'SELECT FROM subscriptions WHERE deleted_at IS NOT NULL',
    );
    expect(rows).toEqual([]);
  });

  test('for a malformed or unknown id of a delivery', async () => {
    const ids = ['x', 'wdl_x', '%00', createId('delivery'), createId('event'), `wdl_${'z'.repeat(27)}`];
    for (const id of ids) {
      const path = account.path(`/subscription/${subscriptionId}/delivery/${id}`);
      const notFound = { status: 404, json: failure(404, 'Delivery not found.') };
      expect(await harness.call('GET', path, { token })).toMatchObject(notFound);
      expect(await harness.call('POST', `${path}/redeliver`, { token })).toMatchObject(notFound);
    }
  });
});

describe('a query', () => {
  const lists = () => [
    account.path('/subscriptions'),
    account.path(`/subscription/${subscriptionId}/deliveries`),
  ];

  test.each([
    ['limit=0', 'limit: must be an integer between 1 and 100'],
    ['limit=-1', 'limit: must be an integer between 1 and 100'],
    ['limit=101', 'limit: must be an integer between 1 and 100'],
    ['limit=x', 'limit: must be an integer between 1 and 100'],
    ['limit=', 'limit: must be an integer between 1 and 100'],
    ['limit=1.5', 'limit: must be an integer between 1 and 100'],
    ['limit=1e1', 'limit: must be an integer between 1 and 100'],
    ['limit=5&limit=6', 'limit: must be given once'],
    ['offset=-1', 'offset: must be an integer of at least 0'],
    ['offset=x', 'offset: must be an integer of at least 0'],
    ['offset=99999999999999999999', 'offset: must be an integer of at least 0'],
    [
      'limit=0&offset=x',
      'limit: must be an integer between 1 and 100\noffset: must be an integer of at least 0',
    ],
  ])('with invalid page parameters is a 400 that names them: %s', async (query, line) => {
    for (const path of lists()) {
      const { status, json } = await harness.call('GET', `${path}?${query}`, { token });
      expect({ status, messages: json.status.developer_message }).toEqual({ status: 400, messages: line });
      expect(json.data).toBeNull();
    }
  });

  test.each(['limit=1', 'limit=100', 'offset=0', 'offset=9007199254740991', 'limit=007&include_related=[]'])(
    'with the valid page parameter %s is a 200',
    async (query) => {
      for (const path of lists()) {
        expect((await harness.call('GET', `${path}?${query}`, { token })).status).toBe(200);
      }
    },
  );

  test('with an unknown parameter is a 400 on every list', async () => {
    const document = openApiDocument();
    const ids = { account_id: account.id, webhook_id: subscriptionId, run_id: 1, project_id: projectId };
    const paths = Object.entries(document.paths).flatMap(([path, { get }]) => {
      const response = get?.responses[200];
      const data =
        response && 'content' in response && response.content?.['application/json']?.schema.properties?.data;
      return data && data.type === 'array'
        ? [path.replaceAll(/\{(\w+)\}/g, (_, name) => String(ids[name as 'run_id']))]
        : [];
    });
    expect(paths.length).toBeGreaterThan(15);
    const session = { headers: await harness.signIn(await harness.newUser(account, 'developer', [])) };
    for (const path of paths) {
      const caller = path.startsWith('/api/v3/profile') ? session : { token };
      const { status, json } = await harness.call('GET', `${path}?statsu=Errored&limitt=1`, caller);
      const unknown = 'is not a parameter of this call';
      const messages = `statsu: ${unknown}\nlimitt: ${unknown}`;
      const required = path.endsWith('/statistics') ? 'subscription_id: must be given\n' : '';
      expect({ path, status, messages: json.status.developer_message }).toEqual({
        path,
        status: 400,
        messages: required + messages,
      });
    }
  });

  const TIMESTAMP_PROBLEM =
    'must be microseconds since the epoch, in digits, or an ISO 8601 time with its zone';

  test.each([
    ['status=done', 'status: must be one of pending, delivered, failed, cancelled'],
    [
      'event_type=job.run.deleted',
      'event_type: must be one of job.run.started, job.run.completed, job.run.errored',
    ],
    ['run_id=x', 'run_id: must be an id: digits'],
    ['run_id=1%00', 'run_id: must be an id: digits'],
    ['since=yesterday', `since: ${TIMESTAMP_PROBLEM}`],
    ['since=2026-02-30', `since: ${TIMESTAMP_PROBLEM}`],
    ['since=2026-11-21T10:00:00', `since: ${TIMESTAMP_PROBLEM}`],
    ['until=-5', `until: ${TIMESTAMP_PROBLEM}`],
    ['until=1&until=2', 'until: must be given once'],
    [
      'status=x&run_id=y',
      'status: must be one of pending, delivered, failed, cancelled\nrun_id: must be an id: digits',
    ],
  ])('with an invalid filter of the log is a 400 that names it: %s', async (query, line) => {
    const [, path] = lists();
    const { status, json } = await harness.call('GET', `${path}?${query}`, { token });
    expect({ status, messages: json.status.developer_message }).toEqual({ status: 400, messages: line });
  });
});
