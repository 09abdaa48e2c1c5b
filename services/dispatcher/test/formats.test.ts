import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { type EventType, type JobRunEvent, sign } from '@runhook/contract';
import {
  discordTarget,
  eventually,
  exampleEvent,
  oneQueueBackend,
  pagerDutyTarget,
  type Responder,
  slackTarget,
  teamsTarget,
  testSecrets,
} from '@runhook/testing';
import { type Harness, openHarness } from './harness.ts';
import { attemptsOf, type DeliveryRow, deliveriesOf } from './log-rows.ts';

const ROUTING_KEY = '0123456789abcdef0123456789abcdef';

describe.each(oneQueueBackend())('on $name', (backend) => {
  let harness: Harness;
  beforeEach(async () => {
    harness = await openHarness(backend);
  });
  afterEach(() => harness.close());

  async function subscribe(format: string, path: string, target: Responder) {
    harness.receiver.respondWith(target);
    const subscription = await harness.subscribe(path);
    await setFormat(subscription.id, format);
    return subscription;
  }

  const setFormat = (id: string, format: string | null) =>
    harness.database.prisma.subscription.update({
      where: { id },
      data: {
        format,
        ...(format === 'pagerduty' && {
          formatOptionNames: ['routing_key'],
          formatOptionsCiphertext: testSecrets.encrypt(JSON.stringify({ routing_key: ROUTING_KEY })),
        }),
      },
    });

  const event = (eventType: EventType, runId = 7_001) =>
    exampleEvent(eventType, harness.account.jobs[0] as (typeof harness.account.jobs)[number], runId);

  /** Publishes an event, and returns its delivery once it has ended. */
  async function deliver(published: JobRunEvent): Promise<DeliveryRow> {
    await harness.publisher.publish(published);
    return await ended(published);
  }

  const ended = ({ eventId }: JobRunEvent) =>
    eventually(async () => {
      const delivery = (await deliveriesOf(harness.database)).find((row) => row.event_id === eventId);
      expect(delivery?.status).toMatch(/delivered|failed|cancelled/);
      return delivery as DeliveryRow;
    });

  test.each([
    ['slack', '/services/T/B/ok', slackTarget],
    ['teams', '/workflows/x/invoke?sig=x', teamsTarget],
    ['discord', '/api/webhooks/1/x', discordTarget],
    ['pagerduty', '/v2/enqueue', pagerDutyTarget],
    ['cloudevents', '/events', () => ({ status: 202 })],
  ] as const)('a webhook with the format %s sends what its target accepts', async (format, path, target) => {
    const { hmacSecret } = await subscribe(format, path, target);
    await harness.startDispatcher({ publicUrl: 'https://runhook.example' });
    const delivery = await deliver(event('job.run.errored'));
    expect(delivery).toMatchObject({ status: 'delivered', attempt_count: 1 });
    const [request] = harness.receiver.requests;
    const body = request?.body.toString() ?? '';
    expect(body).toContain(`https://runhook.example/accounts/${harness.account.id}`);
    // The bytes that were sent are signed. Azure rejects an address with a signature and an `Authorization`.
    expect(request?.headers.authorization).toBe(format === 'teams' ? undefined : sign(body, hmacSecret));
    expect(request?.headers['webhook-signature']).toMatch(/^v1,/);
    const [attempt] = await attemptsOf(harness.database, delivery.id);
    expect(attempt).toMatchObject({ number: 1, format });
    expect(JSON.stringify(attempt)).not.toContain(ROUTING_KEY);
  });

  test.each([
    ['slack', '/services/T/B/channel_is_archived', slackTarget, 'unsuccessful_status', 'channel_is_archived'],
    ['teams', '/workflows/x/too_large?sig=x', teamsTarget, 'not_accepted', 'HTTP error 413'],
    ['teams', '/workflows/x/invoke', teamsTarget, 'unsuccessful_status', 'DirectApiAuthorizationRequired'],
    [
      'discord',
      '/api/webhooks/1/x',
      () => ({ status: 400, body: '{"code":50035}' }),
      'unsuccessful_status',
      '50035',
    ],
    ['pagerduty', '/', () => ({ status: 200 }), 'not_accepted', 'PagerDuty responds with 202'],
  ] as const)(
    'a webhook with the format %s does not retry at %s, and is failing',
    async (format, path, target, code, text) => {
      const { id } = await subscribe(format, path, target);
      await harness.startDispatcher();
      const delivery = await deliver(event('job.run.errored'));
      expect(delivery).toMatchObject({ status: 'failed', attempt_count: 1, error_code: code });
      expect(delivery.reason).toContain('Not retried');
      expect(delivery.reason).toContain(text);
      await eventually(async () => {
        const row = await harness.database.prisma.subscription.findUniqueOrThrow({ where: { id } });
        expect(row).toMatchObject({ consecutiveFailures: 1, errorCode: code });
      });
    },
  );

  test('quotes the error text of a target without its invalid characters and the secrets that it echoes', async () => {
    await subscribe('pagerduty', '/v2/enqueue', ({ headers }) => ({
      status: 400,
      body: `Invalid\0 ${ROUTING_KEY}, ${headers['webhook-signature']}`,
    }));
    await harness.startDispatcher();
    const delivery = await deliver(event('job.run.errored'));
    const message = 'PagerDuty responded with 400: Invalid\uFFFD ***, ***';
    expect(delivery).toMatchObject({ status: 'failed', reason: expect.stringContaining(message) });
    expect(await attemptsOf(harness.database, delivery.id)).toMatchObject([{ error_message: message }]);
  });

  test.each([
    ['throttled', 'HTTP error 429'],
    ['cut_off', 'cut off'],
  ])('a 200 of Teams that is not a success is retried: %s', async (name, text) => {
    await subscribe('teams', `/workflows/x/${name}?sig=x`, teamsTarget);
    await harness.startDispatcher({ deliveryMaxRetries: 1 });
    const delivery = await deliver(event('job.run.errored'));
    expect(delivery).toMatchObject({ status: 'failed', attempt_count: 2, error_code: 'not_accepted' });
    expect(delivery.reason).toContain(text);
  });

  test('a format that is set while retries wait is used by the next attempt', async () => {
    const { id } = await harness.subscribe('/services/T/B/ok');
    harness.receiver.respondWith(async (request, index) => {
      // Before its response, so that the retry finds the new format.
      if (index === 0) await setFormat(id, 'slack');
      return await slackTarget(request, index);
    });
    await harness.startDispatcher();
    const delivery = await deliver(event('job.run.errored'));
    expect(delivery).toMatchObject({ status: 'delivered', attempt_count: 2 });
    const attempts = await attemptsOf(harness.database, delivery.id);
    expect(attempts).toMatchObject([
      { format: null, response_body: 'no_text' },
      { format: 'slack', response_body: 'ok' },
    ]);
  });

  test('events that PagerDuty does not need are cancelled with the reason, and an errored run is one trigger', async () => {
    await subscribe('pagerduty', '/v2/enqueue', pagerDutyTarget);
    await harness.startDispatcher();
    const started = await deliver(event('job.run.started'));
    expect(started).toMatchObject({ status: 'cancelled', attempt_count: 0 });
    expect(started.reason).toContain('not notified of runs that start');
    expect(await deliver(event('job.run.errored'))).toMatchObject({ status: 'delivered' });
    const completed = event('job.run.completed');
    const data = { ...completed.data, runStatus: 'Errored', runStatusCode: 20 };
    const repeated = await deliver({ ...completed, data } as JobRunEvent);
    expect(repeated).toMatchObject({ status: 'cancelled', attempt_count: 0 });
    expect(repeated.reason).toContain('has reported the same');
    expect(await deliver(event('job.run.completed', 7_002))).toMatchObject({ status: 'delivered' });
    const sent = harness.receiver.requests.map(({ body }) => JSON.parse(body.toString()));
    expect(sent.map(({ event_action }) => event_action)).toEqual(['trigger', 'resolve']);
    expect(new Set(sent.map(({ dedup_key }) => dedup_key)).size).toBe(1);
  });

  test('a trigger whose response was costly to read is not repeated', async () => {
    await subscribe('pagerduty', '/v2/enqueue', pagerDutyTarget);
    harness.receiver.handleWith((request, response) => {
      response.statusCode = 202;
      for (let chunk = 0; chunk < 1_000; chunk += 1) response.write('x');
      request.once('end', () => response.end());
      request.resume();
    });
    await harness.startDispatcher();
    const { data, ...completed } = event('job.run.completed');
    expect(await deliver(event('job.run.errored'))).toMatchObject({ status: 'delivered' });
    const failed = { ...completed, data: { ...data, runStatus: 'Errored', runStatusCode: 20 } };
    expect(await deliver(failed as JobRunEvent)).toMatchObject({ status: 'cancelled' });
  });

  test('a trigger that is older than a delivered resolve of its job is not sent', async () => {
    const { id } = await subscribe('pagerduty', '/v2/enqueue', pagerDutyTarget);
    const trigger = event('job.run.errored');
    const resolve = event('job.run.completed', 7_002);
    // The trigger fails until the resolve of a later run has arrived.
    harness.receiver.respondWith(async (request, index) => {
      if (index === 0) await harness.publisher.publish(resolve);
      const isResolve = JSON.parse(request.body.toString()).event_action === 'resolve';
      return isResolve ? await pagerDutyTarget(request, index) : { status: 500 };
    });
    await harness.startDispatcher({ retryBaseDelayMs: 100, deliveryMaxRetries: 10 });
    const cancelled = await deliver(trigger);
    expect(await ended(resolve)).toMatchObject({ status: 'delivered', attempt_count: 1 });
    expect(cancelled.status).toBe('cancelled');
    expect(cancelled.reason).toContain('run 7002 of the job, which ended later');
    expect(harness.receiver.requests.at(-1)?.body.toString()).toContain('"resolve"');
    const alert = await harness.database.prisma.jobAlert.findFirstOrThrow({ where: { subscriptionId: id } });
    expect(alert).toMatchObject({ state: 'resolve', eventId: resolve.eventId });
  });

  test('a time in the future hides no later failure, and another target is notified of a reported run', async () => {
    const { id } = await subscribe('pagerduty', '/v2/enqueue', pagerDutyTarget);
    await harness.startDispatcher();
    const endedAt = (type: EventType, runId: number, data: object) => {
      const example = event(type, runId);
      return { ...example, data: { ...example.data, ...data } } as JobRunEvent;
    };
    await deliver(endedAt('job.run.completed', 7_002, { runFinishedAt: '2099-01-01T00:00:00Z' }));
    const failed = await deliver(endedAt('job.run.errored', 7_003, { runErroredAt: '2098-01-01T00:00:00Z' }));
    expect(failed.status).toBe('delivered');
    await setFormat(id, 'pagerduty');
    const data = { runStatus: 'Errored', runStatusCode: 20, runFinishedAt: '2098-01-01T00:00:09Z' };
    expect(await deliver(endedAt('job.run.completed', 7_003, data))).toMatchObject({ status: 'delivered' });
  });

  test('a webhook with a format of a later release waits, and other webhooks get the event', async () => {
    const { id } = await harness.subscribe('/later');
    await setFormat(id, 'telegram');
    await harness.subscribe('/plain');
    await harness.startDispatcher();
    await harness.publisher.publish(event('job.run.errored'));
    const [request] = await harness.receiver.waitFor(1);
    expect(request?.path).toBe('/plain');
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.map(({ status }) => status).sort()).toEqual(['delivered', 'pending']);
    });
    await setFormat(id, null);
    await harness.receiver.waitFor(2);
  });
});
