import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createEventPublisher } from '@runhook/publisher';
import { eventually, exampleEvent, type TestAccount } from '@runhook/testing';
import { startService } from '../services.ts';
import {
  createCalls,
  type Delivery,
  type Releases,
  releaseAll,
  type StoryCase,
  type StoryWorld,
  type Subscription,
  seedTest,
  startServices,
} from './world.ts';

/**
 * Describes the services as processes: the path of an event to its endpoint, and with the extent `whole` also failures
 * of endpoints and killed processes.
 */
export function describeStory(story: StoryCase, extent: 'essentials' | 'whole'): void {
  describe(`the services as processes, ${story.name}`, () => {
    const serviceReleases: Releases = [];
    const testReleases: Releases = [];
    const world = {
      afterTest: (release) => void testReleases.push(release),
      ...createCalls(() => world),
    } as StoryWorld;

    beforeAll(() => startServices(world, story, serviceReleases));
    beforeEach(() => seedTest(world));
    afterEach(() => releaseAll(testReleases));
    afterAll(() => releaseAll(serviceReleases));

    describeEssentials(world);
    if (extent === 'whole') describeFailures(world);
  });
}

function describeEssentials(world: StoryWorld): void {
  test('a failed run sends its events, openssl verifies each delivery, and the log has all of them', async () => {
    const { id, hmac_secret } = await world.subscribe();
    const job_id = world.account.jobs[0]?.id;
    const run = (await world.call<{ id: number }>('POST', world.runs(), { job_id, engine_version: '1.9.2' }))
      .data;
    await world.call('POST', world.runs(`${run.id}/finish/`), {
      status: 'errored',
      status_message: 'Model orders failed',
    });
    await world.receiver.waitFor(2);
    expect(
      world
        .payloads()
        .map(({ eventType }) => eventType)
        .sort(),
    ).toEqual(['job.run.errored', 'job.run.started']);
    await world.call('POST', world.runs(`${run.id}/artifacts/`));
    await world.receiver.waitFor(3);

    const completed = world.payloads().find(({ eventType }) => eventType === 'job.run.completed');
    expect(completed).toMatchObject({
      accountId: world.account.id,
      webhooksID: id,
      webhookName: 'Pager',
      data: {
        runId: String(run.id),
        runStatus: 'Errored',
        runStatusCode: 20,
        runStatusMessage: 'Model orders failed',
      },
    });
    for (const { body, headers } of world.receiver.requests) {
      const openssl = spawnSync('openssl', ['dgst', '-sha256', '-hmac', hmac_secret, '-hex'], {
        input: body,
      });
      if (openssl.error) process.stdout.write(`openssl was not run: ${openssl.error.message}\n`);
      else expect(openssl.stdout.toString().trim().split('= ')[1]).toBe(headers.authorization);
    }
    await eventually(async () => {
      const deliveries = await world.deliveriesOf(id);
      expect(deliveries.map(({ status }) => status)).toEqual(['delivered', 'delivered', 'delivered']);
      const { data } = await world.call<Subscription>('GET', world.webhooks(`subscription/${id}`));
      expect(data.http_status_code).toBe('200');
    });
  });

  test('an event is processed in the same way whether it is published onto the queue, published over REST or reported, and is delivered once even if it is published again', async () => {
    const { id } = await world.subscribe();
    const job = world.account.jobs[0] as TestAccount['jobs'][number];
    const publisher = createEventPublisher({ queueUrl: world.environment.QUEUE_URL });
    world.afterTest(() => publisher.close());
    const published = exampleEvent('job.run.started', job, 4_001);
    await publisher.publish(published);
    await world.call('POST', world.runs(), { job_id: job.id, run_id: 4_002, engine_version: '1.9.2' });
    await world.receiver.waitFor(2);
    // A delivery is recorded shortly after it arrived.
    await eventually(async () => expect(await world.deliveriesOf(id)).toHaveLength(2));
    const overRest = exampleEvent('job.run.started', job, 4_004);
    const events = { events: [published, overRest] };
    const { data } = await world.call<{ events: { verdict: string }[] }>(
      'POST',
      `/v2/accounts/${world.account.id}/events`,
      events,
    );
    expect(data.events.map(({ verdict }) => verdict)).toEqual(['duplicate', 'accepted']);
    await world.receiver.waitFor(3);
    await publisher.publish(published);
    await publisher.publish(overRest);
    await publisher.publish(exampleEvent('job.run.errored', job, 4_003));
    await world.receiver.waitFor(4);

    const deliveries = await eventually(async () => {
      const found = await world.deliveriesOf(id);
      expect(found.map(({ status }) => status)).toEqual(Array(4).fill('delivered'));
      return found;
    });
    expect(deliveries.map(({ run_id }) => run_id).sort()).toEqual(['4001', '4002', '4003', '4004']);
    const [fromQueue, fromRest] = world.payloads();
    expect(Object.keys(fromRest)).toEqual(Object.keys(fromQueue));
    expect(Object.keys(fromRest.data)).toEqual(Object.keys(fromQueue.data));
  });

  test('one of two concurrent events with the same id and different data is recorded, and the last attempts send that one', async () => {
    await world.subscribe({ event_types: ['job.run.started'] });
    world.receiver.respondWith(500);
    const job = world.account.jobs[0] as TestAccount['jobs'][number];
    const publisher = createEventPublisher({ queueUrl: world.environment.QUEUE_URL });
    world.afterTest(() => publisher.close());
    const conflicts = async () => {
      const text = await (await fetch(`${world.dispatcher.url}/metrics`)).text();
      return Number(/^runhook_events_total\{[^}]*result="conflict"[^}]*\} (\d+)$/m.exec(text)?.[1] ?? 0);
    };
    const conflictsBefore = await conflicts();
    const events = Array.from({ length: 10 }, (_, number) =>
      exampleEvent('job.run.started', job, 5_000 + number),
    );
    const ofRest = events.map(({ data, ...event }) => ({
      ...event,
      data: { ...data, runReason: 'over REST' },
    }));
    const [{ data }] = await Promise.all([
      world.call<{ events: { event_id: string; verdict: string; errors?: { field: string }[] }[] }>(
        'POST',
        `/v2/accounts/${world.account.id}/events`,
        { events: ofRest },
      ),
      // One more event creates another job, because the queue drops a job with the same events as an existing one.
      publisher.publishMany([...events, exampleEvent('job.run.errored', job, 5_099)]),
    ]);
    const rejected = data.events.filter(({ verdict }) => verdict === 'rejected');
    expect(rejected.flatMap(({ errors = [] }) => errors.map(({ field }) => field))).toEqual(
      rejected.map(() => 'eventId'),
    );
    const accepted = data.events.filter(({ verdict }) => verdict === 'accepted');
    expect(accepted.length + rejected.length).toBe(events.length);
    // Either REST rejected one of the two bodies, or the message with the same id is a conflict.
    await eventually(async () => expect((await conflicts()) - conflictsBefore).toBe(accepted.length));
    const { rows } = await world.database.pool.query<{ id: string; reason: string }>(
      `SELECT id, data ->> 'runReason' AS reason FROM events WHERE account_id = $1 AND event_type = 'job.run.started'`,
      [world.account.id],
    );
    const ofAccepted = new Set(accepted.map(({ event_id }) => event_id));
    const recorded = events.map(({ eventId, data }): [string, string] => [
      eventId,
      ofAccepted.has(eventId) ? 'over REST' : data.runReason,
    ]);
    expect(new Map(rows.map(({ id, reason }) => [id, reason]))).toEqual(new Map(recorded));
    // Requests that were sent before the commit may contain either body (docs/contract.md); the last attempts must not.
    await eventually(async () => {
      const { rows: failed } = await world.database.pool.query(
        `SELECT FROM deliveries WHERE account_id = $1 AND event_type = 'job.run.started' AND status = 'failed'`,
        [world.account.id],
      );
      expect(failed).toHaveLength(events.length);
    });
    const last = new Map(world.payloads().map(({ eventId, data }) => [eventId, data.runReason]));
    expect(last).toEqual(new Map(recorded));
  });
}

function describeFailures(world: StoryWorld): void {
  test('a failed delivery is redelivered manually with the same body and consecutive attempt numbers', async () => {
    const { id } = await world.subscribe({ event_types: ['job.run.started'] });
    world.receiver.respondWith(500);
    await world.call('POST', world.runs(), { job_id: world.account.jobs[0]?.id, engine_version: '1.9.2' });
    await world.receiver.waitFor(6);
    const [failed] = await eventually(async () => {
      const found = await world.deliveriesOf(id);
      expect(found).toMatchObject([{ status: 'failed', attempt_count: 6 }]);
      return found;
    });
    world.receiver.respondWith(200);
    const path = world.webhooks(`subscription/${id}/delivery/${failed?.id}`);
    expect((await world.call('POST', `${path}/redeliver`)).status.code).toBe(202);
    const requests = await world.receiver.waitFor(7);
    expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1);
    await eventually(async () => {
      const { data } = await world.call<Delivery>('GET', path);
      expect(data).toMatchObject({ status: 'delivered', attempt_count: 7 });
      expect(data.attempts.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    });
  });

  test('an event that REST accepted is delivered although management is killed immediately afterwards', async () => {
    await world.subscribe({ event_types: ['job.run.started'] });
    const accepted: number[] = [];
    const report = async (run_id: number) => {
      const body = { job_id: world.account.jobs[0]?.id, run_id, engine_version: '1.9.2' };
      const response = await world.call('POST', world.runs(), body).catch(() => null);
      if (response?.status.code === 201) accepted.push(run_id);
      if (accepted.length === 1) await world.management.kill();
    };
    await Promise.all(Array.from({ length: 20 }, (_, index) => report(6_000 + index)));
    expect(accepted.length).toBeGreaterThan(0);
    world.management = await startService('management', world.environment);
    await eventually(() => {
      const arrived = world.payloads().map(({ data }) => Number(data.runId));
      for (const run_id of accepted) expect(arrived).toContain(run_id);
    });
  });

  test('a dispatcher that is killed during its requests loses no delivery, and only these requests are repeated', async () => {
    const { id } = await world.subscribe({ event_types: ['job.run.started'] });
    world.receiver.respondWith({ neverResponds: true });
    const job = world.account.jobs[0] as TestAccount['jobs'][number];
    const publisher = createEventPublisher({ queueUrl: world.environment.QUEUE_URL });
    world.afterTest(() => publisher.close());
    const events = Array.from({ length: 10 }, (_, index) =>
      exampleEvent('job.run.started', job, 5_000 + index),
    );
    await publisher.publishMany(events);
    await world.receiver.waitFor(10);
    await world.dispatcher.kill();
    world.receiver.respondWith(200);
    // A dispatcher leaves first attempts to the process that began them for the duration of an attempt; here it has the production value.
    world.dispatcher = await startService('dispatcher', {
      ...world.environment,
      DELIVERY_TIMEOUT_MS: '10000',
    });
    await world.receiver.waitFor(20);
    await eventually(async () => {
      const deliveries = await world.deliveriesOf(id);
      expect(deliveries.map(({ status }) => status)).toEqual(Array(10).fill('delivered'));
    });
    // Only the ten requests in flight at the kill are repeated.
    expect(world.receiver.requests).toHaveLength(20);
  });
}
