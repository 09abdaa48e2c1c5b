import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verify } from '@runhook/contract';
import { type Receiver, startReceiver } from '@runhook/testing';
import { type Harness, type Json, startHarness, type TestAccount } from '../harness.ts';

const TIMEOUT_MS = 400;

let harness: Harness;
let account: TestAccount;
let receiver: Receiver;

beforeAll(async () => {
  harness = await startHarness({ deliveryTimeoutMs: TIMEOUT_MS, egressAllowCidrs: ['127.0.0.1/32'] });
  account = await harness.newAccount();
});

beforeEach(async () => {
  receiver = await startReceiver();
});

afterEach(() => receiver.close());

afterAll(() => harness.close());

const newSubscription = async (fields: object = {}): Promise<Json> =>
  await harness.newSubscription(account, { client_url: `${receiver.url}/hook`, ...fields });

async function runTest(id: string, query = '') {
  const { token } = account;
  return await harness.call('GET', account.path(`/subscription/${id}/test${query}`), { token });
}

const verified = (error: string | null, statusCode: string) => ({
  status: 200,
  json: { data: { verification_error: error, verification_status_code: statusCode }, status: { code: 200 } },
});

describe('testing a subscription', () => {
  test('sends a signed sample of the account and the subscription', async () => {
    const { id, hmac_secret: secret } = await newSubscription({ name: 'Pager "één"' });
    expect(await runTest(id)).toMatchObject(verified(null, '200'));
    const [request] = await receiver.waitFor(1);
    expect(request).toMatchObject({ method: 'POST', path: '/hook' });
    const { headers, body } = request as NonNullable<typeof request>;
    expect(verify(body, secret, headers.authorization)).toBe(true);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Runhook\//),
      'webhook-signature': expect.stringMatching(/^v1,/),
    });
    const payload = JSON.parse(body.toString());
    expect(payload).toMatchObject({
      accountId: account.id,
      webhooksID: id,
      eventId: headers['webhook-id'],
      eventType: 'job.run.completed',
      webhookName: 'Pager "één"',
      data: {
        runStatus: 'Success',
        runStatusCode: 10,
        runFinishedAt: expect.stringMatching(/^[\d-]{10}T[\d:]{8}Z$/),
      },
    });
    expect(payload.eventId).toMatch(/^wev_[0-9A-Za-z]{27}$/);
  });

  test('sends another event every time', async () => {
    const { id } = await newSubscription();
    await runTest(id);
    await runTest(id);
    const [first, second] = await receiver.waitFor(2);
    expect(first?.headers['webhook-id']).not.toBe(second?.headers['webhook-id']);
  });

  test.each([204, 299])('takes a %d for a success', async (status) => {
    receiver.respondWith(status);
    expect(await runTest((await newSubscription()).id)).toMatchObject(verified(null, String(status)));
  });

  test.each([301, 404, 410, 500])('reports a %d as it is', async (status) => {
    receiver.respondWith(status);
    const expected = verified(`The endpoint answered ${status}.`, String(status));
    expect(await runTest((await newSubscription()).id)).toMatchObject(expected);
  });

  test('reports an endpoint that does not answer in time as 504', async () => {
    receiver.respondWith({ never: true });
    expect(await runTest((await newSubscription()).id)).toMatchObject(
      verified('Timed out after 0.4 s.', '504'),
    );
    receiver.respondWith({ drip: { bytes: 1, intervalMs: 20 } });
    expect(await runTest((await newSubscription()).id)).toMatchObject(
      verified('Timed out after 0.4 s.', '504'),
    );
  });

  test('reports an endpoint that cannot be reached as 502', async () => {
    const { id } = await newSubscription();
    await receiver.close();
    expect(await runTest(id)).toMatchObject(verified('Connection refused.', '502'));
  });

  test('reports an address that is forbidden by now as 502, and sends nothing', async () => {
    const { id } = await newSubscription();
    const url = receiver.url.replace('127.0.0.1', '127.0.0.2');
    await harness.database.pool.query('UPDATE subscriptions SET client_url = $2 WHERE id = $1', [id, url]);
    expect(await runTest(id)).toMatchObject(
      verified('The endpoint has no address that may be called.', '502'),
    );
    expect(receiver.requests).toEqual([]);
  });

  test('tells targets that it did not call in the same words, whatever refused them', async () => {
    const { id } = await newSubscription();
    const answers = [];
    for (const url of [
      receiver.url.replace('127.0.0.1', '127.0.0.2'),
      'http://10.20.30.40/',
      'http://no-such-name.invalid/',
    ]) {
      const values = [id, url];
      await harness.database.pool.query('UPDATE subscriptions SET client_url = $2 WHERE id = $1', values);
      answers.push((await runTest(id, '?include=error_code')).json.data);
    }
    const [first] = answers;
    expect(first).toEqual({
      verification_error: 'The endpoint has no address that may be called.',
      verification_status_code: '502',
      verification_error_code: 'no_address',
    });
    for (const answer of answers) expect(answer).toEqual(first);
  });

  test.each([502, 504])('tells a %d of the endpoint from its own', async (status) => {
    receiver.respondWith(status);
    const { id } = await newSubscription();
    const answered = {
      verification_error: `The endpoint answered ${status}.`,
      verification_status_code: String(status),
    };
    expect((await runTest(id)).json.data).toEqual(answered);
    expect((await runTest(id, '?include=error_code')).json.data).toEqual({
      ...answered,
      verification_error_code: 'unsuccessful_status',
    });
    await receiver.close();
    expect((await runTest(id, '?include=error_code')).json.data).toMatchObject({
      verification_status_code: '502',
      verification_error_code: 'connection_refused',
    });
    expect((await runTest(id, '?include=all')).status).toBe(400);
  });

  test('works on an inactive subscription and leaves no trace, whatever the outcome', async () => {
    const { id } = await newSubscription({ active: false });
    const read = async () => {
      const { rows } = await harness.database.pool.query(
        'SELECT s::text FROM subscriptions s WHERE id = $1',
        [id],
      );
      return { subscription: rows, counts: await harness.rowCounts() };
    };
    const before = await read();
    expect(await runTest(id)).toMatchObject(verified(null, '200'));
    receiver.respondWith(500);
    expect(await runTest(id)).toMatchObject(verified('The endpoint answered 500.', '500'));
    expect(await read()).toEqual(before);
  });
});
