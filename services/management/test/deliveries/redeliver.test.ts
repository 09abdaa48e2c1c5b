import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryJobId, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { createQueueBackend } from '@runhook/queue';
import { createTestDatabase, createTestQueueUrl, queueBackends } from '@runhook/testing';
import { failure, type Harness, SUBSCRIPTION_FIELDS, startHarness, type TestAccount } from '../harness.ts';
import { type DeliveryFields, insertDelivery } from './delivery-rows.ts';

describe.each(queueBackends())('redelivering, with the queue on $name', (backend) => {
  let harness: Harness;
  let account: TestAccount;
  let subscriptionId: string;
  let queueDatabase: Awaited<ReturnType<typeof createTestDatabase>>;

  beforeAll(async () => {
    queueDatabase = await createTestDatabase();
    const queueUrl = await createTestQueueUrl(backend, queueDatabase.url);
    harness = await startHarness({ queueUrl, deliveryMaxRetries: 3 });
  });

  beforeEach(async () => {
    account = await harness.newAccount();
    subscriptionId = (await harness.newSubscription(account)).id;
  });

  afterAll(async () => {
    await harness.close();
    await queueDatabase.drop();
  });

  const insert = async (fields: Partial<DeliveryFields> = {}) =>
    await insertDelivery(harness.database, { subscriptionId, accountId: account.id, ...fields });

  const pathOf = (id: string) => account.path(`/subscription/${subscriptionId}/delivery/${id}`);

  async function redeliver(id: string) {
    return await harness.call('POST', `${pathOf(id)}/redeliver/`, { token: account.token });
  }

  async function rowOf(id: string) {
    const { rows } = await harness.database.pool.query('SELECT * FROM deliveries WHERE id = $1', [id]);
    return rows[0];
  }

  async function jobsOf(id: string) {
    const queue = createQueueBackend(harness.settings.queueUrl).createQueue<{ deliveryId: string }>(
      WEBHOOK_DELIVERIES,
    );
    try {
      return (await queue.getJobs()).filter((job) => job.data.deliveryId === id);
    } finally {
      await queue.close();
    }
  }

  const PENDING = { status: 409, json: failure(409, 'The delivery is still pending.') };

  test.each([
    ['delivered', 1],
    ['failed', 6],
    ['cancelled', 0],
  ])('starts a new cycle of a delivery that is %s and queues it', async (status, attemptCount) => {
    const { id } = await insert({ status, attemptCount, reason: 'why', completedAt: '2026-11-20T10:00:00Z' });
    const deliveryBefore = (await harness.call('GET', pathOf(id), { token: account.token })).json.data;
    const { payload, attempts, ...deliveryRow } = deliveryBefore;
    const response = await redeliver(id);
    expect({ status: response.status, json: response.json }).toEqual({
      status: 202,
      json: {
        data: {
          ...deliveryRow,
          status: 'pending',
          reason: null,
          completed_at: null,
          next_attempt_at: expect.stringMatching(/^\d{16}$/),
        },
        status: { code: 202 },
      },
    });
    expect(await rowOf(id)).toMatchObject({ status: 'pending', trigger: 'manual', cycle: attemptCount });
    const [job, ...otherJobs] = await jobsOf(id);
    expect(otherJobs).toEqual([]);
    expect(job?.id).toBe(deliveryJobId({ deliveryId: id, cycle: attemptCount }));
    expect(job?.data).toEqual({ deliveryId: id, cycle: attemptCount, accountId: account.id });
    expect(job?.opts).toMatchObject({ attempts: 4 });
  });

  test('retains the only attempt of a delivery in the log', async () => {
    const { id } = await insert({ status: 'delivered', attemptCount: 1, httpStatusCode: 204 });
    await harness.database.pool.query(
      `UPDATE deliveries SET duration_ms = 12, started_at = '2026-11-20T10:00:00.123456Z', total_ms = 11,
         request_headers = '{"user-agent": "Runhook/9.9.9", "authorization": "***"}', response_headers = '{"x-of": "it"}', response_body = 'ok', format = 'slack',
         response_truncated = false
       WHERE id = $1`,
      [id],
    );
    const attempts = async () =>
      (await harness.call('GET', pathOf(id), { token: account.token })).json.data.attempts;
    const deliveryBefore = await attempts();
    expect(deliveryBefore).toEqual([
      {
        number: 1,
        trigger: 'automatic',
        format: 'slack',
        started_at: '1795168800123456',
        duration_ms: 12,
        http_status_code: '204',
        error: null,
        request_headers: { 'user-agent': 'Runhook/9.9.9', authorization: '***' },
        response_headers: { 'x-of': 'it' },
        response_body: 'ok',
        response_truncated: false,
        timings: { dns_ms: null, connect_ms: null, tls_ms: null, first_byte_ms: null, total_ms: 11 },
      },
    ]);
    expect((await redeliver(id)).status).toBe(202);
    expect(await attempts()).toEqual(deliveryBefore);
    expect(await rowOf(id)).toMatchObject({ started_at: null, request_headers: null, format: null });
    expect(await harness.database.prisma.attempt.count({ where: { deliveryId: id } })).toBe(1);
  });

  test('rejects a pending delivery with a 409 and does not change it', async () => {
    const { id } = await insert({ status: 'pending', attemptCount: 2 });
    const deliveryBefore = await rowOf(id);
    expect(await redeliver(id)).toMatchObject(PENDING);
    expect(await rowOf(id)).toEqual(deliveryBefore);
    expect(await jobsOf(id)).toEqual([]);
  });

  test('accepts one of many concurrent calls and rejects the others with a 409', async () => {
    const { id } = await insert({ status: 'failed' });
    const responses = await Promise.all(Array.from({ length: 8 }, () => redeliver(id)));
    expect(responses.map(({ status }) => status).sort()).toEqual([202, ...Array(7).fill(409)]);
    for (const response of responses.filter(({ status }) => status === 409))
      expect(response).toMatchObject(PENDING);
    expect(await jobsOf(id)).toHaveLength(1);
  });

  test('rejects a delivery of an inactive subscription with a 409 and does not change it', async () => {
    const { id } = await insert();
    const deliveryBefore = await rowOf(id);
    const body = { ...SUBSCRIPTION_FIELDS, active: false };
    await harness.call('PUT', account.path(`/subscription/${subscriptionId}`), {
      token: account.token,
      body,
    });
    const inactive = failure(409, 'The webhook is inactive: activate it to deliver again.');
    expect(await redeliver(id)).toMatchObject({ status: 409, json: inactive });
    expect(await rowOf(id)).toEqual(deliveryBefore);
  });
});
