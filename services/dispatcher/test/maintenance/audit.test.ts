import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { deliveryIdFor, eventJobId, JOB_RUN_EVENTS, type JobRunEvent } from '@runhook/contract';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { connectRedis, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { type AuditPosition, audit } from '../../src/maintenance/audit.ts';
import { type Harness, openHarness } from '../harness.ts';
import { commitResults, insertUndispatched } from '../log-rows.ts';

describe.each(queueBackends())('the audit, on $name', (backend) => {
  let harness: Harness;
  let events: EventQueue;
  let deliveries: DeliveryQueue;
  beforeEach(async () => {
    harness = await openHarness(backend);
    const queueBackend = createQueueBackend(harness.queueUrl);
    events = openEventQueue(queueBackend, () => undefined);
    deliveries = openDeliveryQueue(queueBackend, () => undefined);
  });
  afterEach(async () => {
    await Promise.all([events.close(), deliveries.close()]);
    await harness.close();
  });

  const query = (text: string, values: unknown[] = []) => harness.database.pool.query(text, values);
  const run = (position: AuditPosition = { lane: '' }, lanesMax?: number) =>
    audit(
      {
        pool: harness.database.pool,
        events,
        deliveries,
        quarantine: harness.quarantine,
        retryPolicy: { retriesMax: 5, baseDelayMs: 20 },
        graceMs: 0,
        eventGraceMs: 0,
        random: () => 0,
        confirmAfterMs: 0,
        lanesMax,
      },
      position,
    );
  const publishEvents = (count: number): JobRunEvent[] =>
    Array.from({ length: count }, (_, run) =>
      exampleEvent('job.run.started', harness.account.jobs[0] as never, run),
    );
  /** Inserts events as committed a minute ago, so that the audit assumes that they have reached the queue. */
  async function undispatched(some: readonly JobRunEvent[]): Promise<void> {
    for (const event of some) await insertUndispatched(harness.database, event);
    await query(`UPDATE undispatched_events SET created_at = now() - interval '1 minute'`);
  }
  /** Removes one event from a shared job, as a defect of the queue or of Runhook would. */
  async function removeFromSharedJob(lost: JobRunEvent): Promise<void> {
    const queue = createQueueBackend(harness.queueUrl).createQueue<{ events: JobRunEvent[] }>(JOB_RUN_EVENTS);
    for (const job of await queue.getJobs(['waiting']))
      await job.updateData({ events: job.data.events.filter(({ eventId }) => eventId !== lost.eventId) });
    await queue.close();
  }
  async function pending(count: number, nextAttempt: string, isDeferred = false): Promise<string[]> {
    const { id, name } = await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const rows = publishEvents(count).map((event) => ({
      event,
      version: null,
      deliveries: [
        { id: deliveryIdFor(event.eventId, id), subscriptionId: id, webhookName: name, isDeferred },
      ],
    }));
    await commitResults(harness.database.pool, rows);
    if (!isDeferred)
      await query(`UPDATE deliveries SET attempt_count = 2, next_attempt_at = now() + $1::interval`, [
        nextAttempt,
      ]);
    return rows.map(({ deliveries: [delivery] }) => delivery?.id ?? '');
  }
  const NO_RESULT = { checked: 0, orphaned: 0 };

  test('finds no missing job for events that share jobs, and reports the number of checked events', async () => {
    const some = publishEvents(60);
    await undispatched(some);
    await events.add(some);
    expect(await run()).toEqual({ event: { checked: 60, orphaned: 0 }, delivery: NO_RESULT });
  });

  test('finds an event that is missing from its shared job, and queues it again', async () => {
    const some = publishEvents(20);
    const lost = some[9] as JobRunEvent;
    await undispatched(some);
    await events.add(some);
    await removeFromSharedJob(lost);
    // Judged only by the time of the jobs, the event would count as queued.
    const queuedLookups = { eventId: lost.eventId, accountId: lost.accountId, sinceMs: Date.now() };
    expect(await events.findQueued([queuedLookups])).toEqual(new Set([eventJobId(lost)]));
    expect((await run()).event).toEqual({ checked: 20, orphaned: 1 });
    expect((await run()).event).toEqual({ checked: 20, orphaned: 0 });
    expect(await events.counts()).toMatchObject({ waiting: 2 });
  });

  test('finds a retry that is not due yet and has no job, and queues it for its due time', async () => {
    const [queued = '', lost = ''] = await pending(2, '1 hour');
    const job = { cycle: 0, accountId: harness.account.id, delayMs: 3_600_000, attemptsLeft: 4 };
    await deliveries.add([{ ...job, deliveryId: queued }]);
    expect((await run()).delivery).toEqual({ checked: 2, orphaned: 1 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 0, delayed: 2 });
    expect(
      await deliveries.findQueued([{ deliveryId: lost, cycle: 0, accountId: harness.account.id }]),
    ).toEqual(new Set([`${lost}-0`]));
    expect((await run()).delivery).toEqual({ checked: 2, orphaned: 0 });
  });

  test('finds a lane with deferred deliveries and no job, and wakes it', async () => {
    await pending(3, '', true);
    expect((await run()).delivery).toEqual({ checked: 1, orphaned: 1 });
    expect((await run()).delivery).toEqual({ checked: 1, orphaned: 0 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 1 });
  });

  test('continues after the lanes of the previous audit, and begins with the first lane again after the last', async () => {
    for (let lane = 0; lane < 3; lane += 1) await pending(1, '', true);
    const position = { lane: '' };
    expect((await run(position, 2)).delivery).toEqual({ checked: 2, orphaned: 2 });
    expect((await run(position, 2)).delivery).toEqual({ checked: 1, orphaned: 1 });
    expect((await run(position, 2)).delivery).toEqual({ checked: 2, orphaned: 0 });
    expect(await deliveries.counts()).toMatchObject({ waiting: 3 });
  });

  test('neither counts nor queues an event that is set aside', async () => {
    const [event] = publishEvents(1) as [JobRunEvent];
    await undispatched([event]);
    await harness.quarantine.setAsideEvent(event, new Error('rejected'));
    expect(await run()).toEqual({ event: NO_RESULT, delivery: NO_RESULT });
  });

  test('reads a part of a long queue as a sample, with the range of times at which its jobs were added', async () => {
    const queue = createQueueBackend(harness.queueUrl).createQueue<object>(JOB_RUN_EVENTS);
    // One job a second.
    const startMs = Date.now() - 3_600_000;
    const some = publishEvents(1_500);
    await queue.addBulk(
      some.map((event, index) => ({
        name: event.eventType,
        data: event,
        opts: { jobId: eventJobId(event), timestamp: startMs + index * 1_000 },
      })),
    );
    await queue.close();
    const sample = await events.sample({ fraction: 1, jobsMax: 200 });
    expect(sample.sinceMs).toBe(Number.NEGATIVE_INFINITY);
    expect(sample.untilMs).toBe(startMs + 199_000);
    const middle = await events.sample({ fraction: 0.5, jobsMax: 200 });
    expect([middle.sinceMs, middle.untilMs]).toEqual([startMs + 650_000, startMs + 849_000]);
    for (const event of some.slice(650, 850)) expect(middle.ids.has(eventJobId(event))).toBe(true);
    expect(middle.jobs).toBeLessThan(500);
  });

  test('reads a queue in which a message is null and the key of a waiting job is missing', async () => {
    const queue = createQueueBackend(harness.queueUrl).createQueue<object | null>(JOB_RUN_EVENTS);
    const some = publishEvents(300);
    await queue.addBulk([
      ...some.map((event) => ({ name: event.eventType, data: event, opts: { jobId: eventJobId(event) } })),
      { name: 'x', data: null, opts: {} },
    ]);
    if (backend.name === 'Redis') {
      const redis = await connectRedis(harness.queueUrl);
      await redis.send('SELECT', new URL(harness.queueUrl).pathname.slice(1));
      await redis.send('DEL', queue.toKey(eventJobId(some[298] as JobRunEvent)));
      redis.close();
    }
    await queue.close();
    const { ids } = await events.sample({ fraction: 0, jobsMax: 1_000 });
    for (const event of some.slice(0, 298)) expect(ids.has(eventJobId(event))).toBe(true);
  });
});
