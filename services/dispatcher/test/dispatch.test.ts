import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createKeyPair, renderPayload, verify, verifyEd25519 } from '@runhook/contract';
import {
  countDispatchedEvents,
  eventually,
  exampleEvent,
  oneQueueBackend,
  seedSubscription,
  testSecrets,
} from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, deliveriesOf } from './log-rows.ts';

describe.each(oneQueueBackend())('on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  const subscribe = (options: Partial<Parameters<typeof seedSubscription>[1]> = {}) =>
    seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: `${harness.receiver.url}/hook`,
      ...options,
    });
  const event = (eventType: Parameters<typeof exampleEvent>[0], job = 0) =>
    exampleEvent(eventType, harness.account.jobs[job] as (typeof harness.account.jobs)[number]);

  test('an event becomes a signed request with the exact payload, and the attempt is logged', async () => {
    const subscription = await subscribe();
    await harness.startDispatcher();
    const published = event('job.run.completed');
    await harness.publisher.publish(published);

    const [request] = await harness.receiver.waitFor(1);
    expect(request?.body.toString()).toBe(renderPayload(published, subscription));
    expect(verify(request?.body ?? '', subscription.hmacSecret, request?.headers.authorization)).toBe(true);
    expect(request?.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': published.eventId,
      'user-agent': expect.stringMatching(/^Runhook\//),
    });

    const deliveries = await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows).toMatchObject([
        { status: 'delivered', attempt_count: 1, http_status_code: 200, event_id: published.eventId },
      ]);
      return rows;
    });
    const attempts = await attemptsOf(harness.database, deliveries[0]?.id ?? '');
    expect(attempts).toMatchObject([
      {
        number: 1,
        trigger: 'automatic',
        http_status_code: 200,
        error_code: null,
        // The endpoint is an IP address, without TLS, on a new connection.
        dns_ms: 0,
        connect_ms: expect.any(Number),
        tls_ms: null,
        first_byte_ms: expect.any(Number),
        total_ms: expect.any(Number),
      },
    ]);
    expect(attempts[0]?.request_headers).toEqual({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Runhook\//),
      authorization: '***',
      'webhook-id': published.eventId,
      'webhook-timestamp': request?.headers['webhook-timestamp'],
      'webhook-signature': '***',
    });
    await eventually(async () => {
      const row = await harness.database.prisma.subscription.findUniqueOrThrow({
        where: { id: subscription.id },
      });
      expect(row.httpStatusCode).toBe(200);
      expect(row.dispatchedAt?.getTime()).toBe(attempts[0]?.started_at.getTime());
    });
  });

  test('a webhook with a key pair gets an Ed25519 signature in addition to those of its secret', async () => {
    const { id, hmacSecret } = await subscribe();
    const { id: plainId } = await harness.subscribe('/plain');
    const pairs = [createKeyPair(), createKeyPair()] as const;
    await harness.database.prisma.subscription.update({
      where: { id },
      data: {
        signatureKeyCiphertext: testSecrets.encrypt(pairs[0].privateKey),
        signaturePublicKey: pairs[0].publicKey,
        nextSignatureKeyCiphertext: testSecrets.encrypt(pairs[1].privateKey),
        nextSignaturePublicKey: pairs[1].publicKey,
        rotationStartedAt: new Date(),
        rotationEndsAt: new Date(Date.now() + 3_600_000),
      },
    });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.completed'));
    const requests = await harness.receiver.waitFor(2);
    const requestOf = (webhookId: string) => requests.find(({ body }) => body.includes(webhookId));
    const { headers = {}, body = '' } = requestOf(id) ?? {};
    expect(verify(body, hmacSecret, String(headers.authorization))).toBe(true);
    const [eventId, timestamp] = [String(headers['webhook-id']), String(headers['webhook-timestamp'])];
    const signatures = String(headers['webhook-signature']).split(' ');
    expect(signatures).toEqual([
      expect.stringMatching(/^v1,/),
      expect.stringMatching(/^v1a,/),
      expect.stringMatching(/^v1a,/),
    ]);
    const isSignedBy = (index: 0 | 1, signature = '') =>
      verifyEd25519(eventId, timestamp, body, pairs[index].publicKey, signature);
    expect([isSignedBy(0, signatures[1]), isSignedBy(1, signatures[2])]).toEqual([true, true]);
    // A webhook of another account at the same address signs with another key.
    expect(isSignedBy(0, signatures[2])).toBe(false);
    expect(String(requestOf(plainId)?.headers['webhook-signature'])).toMatch(/^v1,\S+$/);
  });

  test('a custom signature header and custom headers reach the endpoint, and the log contains none of their values', async () => {
    const { id, hmacSecret } = await subscribe();
    const own = { Authorization: 'Basic b3duOmtleQ==', 'X-Gate': 'open sesame' };
    await harness.database.prisma.subscription.update({
      where: { id },
      data: {
        signatureHeader: 'X-Signature',
        headerNames: Object.keys(own),
        headersCiphertext: testSecrets.encrypt(JSON.stringify(own)),
      },
    });
    harness.receiver.respondWith(({ headers }) => ({ body: JSON.stringify(headers) }));
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.completed'));
    const [request] = await harness.receiver.waitFor(1);
    expect(verify(request?.body ?? '', hmacSecret, String(request?.headers['x-signature']))).toBe(true);
    expect(request?.headers).toMatchObject({ authorization: own.Authorization, 'x-gate': own['X-Gate'] });
    const [delivery] = await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows).toMatchObject([{ status: 'delivered' }]);
      return rows;
    });
    const [attempt] = await attemptsOf(harness.database, delivery?.id ?? '');
    const masked = {
      authorization: '***',
      'x-gate': '***',
      'x-signature': '***',
      'webhook-signature': '***',
    };
    expect(attempt?.request_headers).toMatchObject(masked);
    // The endpoint echoes the headers.
    expect(JSON.parse(String(attempt?.response_body))).toMatchObject(masked);
  });

  test('one errored run causes exactly two deliveries for a subscription to errored and completed', async () => {
    await subscribe({ eventTypes: ['job.run.errored', 'job.run.completed'] });
    await harness.startDispatcher();
    await harness.publisher.publishMany([
      event('job.run.started'),
      event('job.run.errored'),
      event('job.run.completed'),
    ]);
    await harness.receiver.waitFor(2);
    await everyEventIsFannedOut(harness, 3);
    const types = (await deliveriesOf(harness.database)).map((row) => row.event_type).sort();
    expect(types).toEqual(['job.run.completed', 'job.run.errored']);
    expect(harness.receiver.requests).toHaveLength(2);
  });

  test('subscriptions to other jobs, inactive and deleted subscriptions cause no delivery', async () => {
    const [first, second] = harness.account.jobs;
    await subscribe({ jobIds: [second?.id ?? 0] });
    await subscribe({ active: false });
    const deleted = await subscribe();
    await harness.database.prisma.subscription.update({
      where: { id: deleted.id },
      data: { deletedAt: new Date() },
    });
    await subscribe({ jobIds: [first?.id ?? 0], name: 'The one' });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    await everyEventIsFannedOut(harness, 1);
    await harness.receiver.waitFor(1);
    expect((await deliveriesOf(harness.database)).map((row) => row.webhook_name)).toEqual(['The one']);
  });

  test('subscriptions whose filters exclude the event cause no delivery, until their filters change', async () => {
    const [job] = harness.account.jobs;
    const filtered = async (name: string, filters: object) => {
      const { id } = await subscribe({ name });
      await harness.database.prisma.subscription.update({ where: { id }, data: { filters } });
      return id;
    };
    const environmentId = Number(job?.environment_id);
    await filtered('Failures', { run_statuses: [20] });
    const elsewhere = await filtered('Elsewhere', { environment_ids: [environmentId + 1_000] });
    await filtered('Project', { run_statuses: [10], project_ids: [Number(job?.project_id)] });
    await harness.startDispatcher();
    const namesAfter = async (events: number) => {
      await harness.publisher.publish(event('job.run.completed'));
      await everyEventIsFannedOut(harness, events);
      return (await deliveriesOf(harness.database)).map((row) => row.webhook_name).sort();
    };
    expect(await namesAfter(1)).toEqual(['Project']);
    await harness.database.prisma.subscription.update({
      where: { id: elsewhere },
      data: { filters: { environment_ids: [environmentId] } },
    });
    expect(await namesAfter(2)).toEqual(['Elsewhere', 'Project', 'Project']);
  });

  test('an account whose plan does not include webhooks gets no delivery', async () => {
    await subscribe();
    await harness.database.prisma.account.updateMany({ data: { plan: 'developer' } });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    await everyEventIsFannedOut(harness, 1);
    expect(await deliveriesOf(harness.database)).toEqual([]);
  });

  test.each([
    [{ plan: 'free' }, "The account's plan does not include webhooks."],
    [{ deployment: 'single_tenant_private' }, "The account's deployment does not include webhooks."],
  ])('a retry is cancelled once its account has lost webhooks by the change %j', async (loss, reason) => {
    await subscribe();
    harness.receiver.respondWith(async () => {
      await harness.database.prisma.account.updateMany({ data: loss });
      return { status: 500 };
    });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    await eventually(async () =>
      expect(await deliveriesOf(harness.database)).toMatchObject([
        { status: 'cancelled', reason, attempt_count: 1, http_status_code: 500, next_attempt_at: null },
      ]),
    );
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('an event that is published three times with the same eventId is delivered once', async () => {
    await subscribe();
    await harness.startDispatcher();
    const published = event('job.run.started');
    await harness.publisher.publishMany([published, published]);
    await harness.receiver.waitFor(1);
    await eventually(async () =>
      expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'delivered' }]),
    );
    await harness.publisher.publish(published);
    await harness.publisher.publish(event('job.run.errored'));
    await harness.receiver.waitFor(2);
    expect(harness.receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([
      published.eventId,
      expect.not.stringContaining(published.eventId),
    ]);
  });

  test('an endpoint that always responds with 500 gets six requests with the same body, then the delivery is failed', async () => {
    await subscribe();
    harness.receiver.respondWith({ status: 500, body: 'no\0pe' });
    await harness.startDispatcher({ retryBaseDelayMs: 40 });
    const published = event('job.run.errored');
    await harness.publisher.publish(published);

    const requests = await harness.receiver.waitFor(6);
    const rows = await eventually(async () => {
      const found = await deliveriesOf(harness.database);
      expect(found).toMatchObject([
        { status: 'failed', attempt_count: 6, http_status_code: 500, next_attempt_at: null },
      ]);
      return found;
    });
    expect(rows[0]?.reason).toBe('All 6 attempts failed. Last: The endpoint responded with 500.');
    expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1);
    expect(new Set(requests.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([published.eventId]),
    );
    const attempts = await attemptsOf(harness.database, rows[0]?.id ?? '');
    expect(attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(attempts[5]).toMatchObject({ error_code: 'unsuccessful_status', response_body: 'no\uFFFDpe' });
    // Each wait is at least the scheduled one with the lowest jitter; its upper limit depends on the machine.
    attempts.slice(1).forEach(({ started_at }, index) => {
      const waitedMs = started_at.getTime() - (attempts[index]?.started_at.getTime() ?? 0);
      expect(waitedMs).toBeGreaterThanOrEqual(40 * 2 ** index * 0.8 - 2);
    });
    expect(harness.receiver.requests).toHaveLength(6);
  });

  test('a delivery to an endpoint that fails twice and recovers is delivered by its third attempt', async () => {
    await subscribe();
    harness.receiver.respondWith((_request, index) => ({ status: index < 2 ? 503 : 204 }));
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    await harness.receiver.waitFor(3);
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([
        { status: 'delivered', attempt_count: 3, http_status_code: 204, reason: null, next_attempt_at: null },
      ]);
    });
  });

  test('a retry is cancelled with a reason once the subscription is inactive', async () => {
    const { id } = await subscribe();
    harness.receiver.respondWith(async () => {
      await harness.database.prisma.subscription.update({ where: { id }, data: { active: false } });
      return { status: 500 };
    });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([
        { status: 'cancelled', reason: 'The subscription is inactive.', attempt_count: 1 },
      ]);
    });
    expect(harness.receiver.requests).toHaveLength(1);
  });

  test('a retry uses the current URL of the subscription, with the same body', async () => {
    const subscription = await subscribe();
    harness.receiver.respondWith(async (_request, index) => {
      if (index > 0) return { status: 200 };
      await harness.database.prisma.subscription.update({
        where: { id: subscription.id },
        data: { clientUrl: `${harness.receiver.url}/moved`, name: 'Renamed' },
      });
      return { status: 500 };
    });
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.started'));
    const [first, second] = await harness.receiver.waitFor(2);
    expect([first?.path, second?.path]).toEqual(['/hook', '/moved']);
    expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBe(true);
  });

  test('redirects count as failures and are not followed', async () => {
    await subscribe();
    harness.receiver.respondWith({ status: 302, headers: { location: `${harness.receiver.url}/elsewhere` } });
    await harness.startDispatcher({ deliveryMaxRetries: 0 });
    await harness.publisher.publish(event('job.run.started'));
    await eventually(async () => {
      expect(await deliveriesOf(harness.database)).toMatchObject([
        { status: 'failed', http_status_code: 302 },
      ]);
    });
    expect(harness.receiver.requests.map(({ path }) => path)).toEqual(['/hook']);
  });

  test('an endpoint at a forbidden address gets no request, and the log has the reason', async () => {
    await subscribe({ clientUrl: 'http://10.0.0.1/hook' });
    await harness.startDispatcher({ deliveryMaxRetries: 0 });
    await harness.publisher.publish(event('job.run.started'));
    const [delivery] = await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows).toMatchObject([
        {
          status: 'failed',
          http_status_code: 502,
          error_code: 'address_forbidden',
          reason: 'The only attempt failed. Last: The endpoint has no address that may be called.',
        },
      ]);
      return rows;
    });
    const attempts = await attemptsOf(harness.database, delivery?.id ?? '');
    expect(attempts).toMatchObject([{ error_code: 'address_forbidden', response_headers: null }]);
    expect(JSON.stringify(attempts)).not.toContain('10.0.0.1');
  });

  test('an endpoint at a port that is not permitted, or in a range that is both denied and permitted, gets no request', async () => {
    const { port } = new URL(harness.receiver.url);
    await subscribe();
    const dispatcher = await harness.startDispatcher({
      deliveryMaxRetries: 0,
      egressPorts: [{ first: Number(port) + 1, last: Number(port) + 1 }],
    });
    const first = event('job.run.started');
    await harness.publisher.publish(first);
    const codeOf = async (id: string) =>
      (await deliveriesOf(harness.database)).find(({ event_id }) => event_id === id)?.error_code;
    await eventually(async () => expect(await codeOf(first.eventId)).toBe('port_forbidden'));
    await dispatcher.stop();
    await harness.startDispatcher({ deliveryMaxRetries: 0, egressDenyCidrs: ['127.0.0.1/32'] });
    const second = event('job.run.started');
    await harness.publisher.publish(second);
    await eventually(async () => expect(await codeOf(second.eventId)).toBe('address_forbidden'));
    expect(harness.receiver.requests).toEqual([]);
  });

  test.each([502, 504])(
    'a response %i of the endpoint is recorded as unsuccessful_status',
    async (status) => {
      const subscription = await subscribe();
      harness.receiver.respondWith(status);
      await harness.startDispatcher({ deliveryMaxRetries: 0 });
      await harness.publisher.publish(event('job.run.started'));
      const recorded = { http_status_code: status, error_code: 'unsuccessful_status' };
      await eventually(async () => {
        expect(await deliveriesOf(harness.database)).toMatchObject([{ status: 'failed', ...recorded }]);
        const { rows } = await harness.database.pool.query('SELECT * FROM subscriptions WHERE id = $1', [
          subscription.id,
        ]);
        expect(rows).toMatchObject([recorded]);
      });
    },
  );
});

async function everyEventIsFannedOut(harness: Harness, count: number): Promise<void> {
  await eventually(async () => {
    expect(await countDispatchedEvents(harness.database)).toBe(count);
  });
}
