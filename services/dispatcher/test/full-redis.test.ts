import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEventPublisher, createQueueBackend, QueueFullError } from '@runhook/queue';
import { eventually, exampleEvent, queueBackends, seedSubscription } from '@runhook/testing';
import { connectTo, startServer } from '../../../packages/queue/test/backends/redis-servers.ts';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

const hasRedis = queueBackends().some(({ name }) => name === 'Redis');
if (!hasRedis) process.stdout.write('without Redis: a full Redis is not tested\n');

(hasRedis ? describe : describe.skip)('a Redis without room', () => {
  const COUNT = 1_000;
  const closers: (() => Promise<unknown>)[] = [];
  let harness: Harness;
  let redis: ReturnType<typeof connectTo>;
  let queueUrl: string;
  beforeEach(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'runhook-full-'));
    closers.push(() => rm(folder, { recursive: true }));
    const server = await startServer({
      folder,
      name: 'full',
      conf: (port) => [`port ${port}`, 'save ""', 'maxmemory-policy noeviction'],
    });
    closers.push(() => server.kill());
    queueUrl = `redis://127.0.0.1:${server.port}`;
    redis = connectTo(server.port);
    closers.push(async () => redis.disconnect());
    harness = await openHarness({ name: 'PostgreSQL' });
    closers.push(() => harness.close());
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const events = (count: number) =>
    Array.from({ length: count }, (_, index) =>
      exampleEvent('job.run.started', harness.account.jobs[0] as never, 20_000 + index),
    );

  async function publish(): Promise<void> {
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    for (let start = 0; start < COUNT; start += 500) await publisher.publishMany(events(500));
  }

  /** Less than it uses now: it refuses whatever needs memory. */
  async function fill(): Promise<void> {
    const memory = await redis.info('memory');
    const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
    await redis.config('SET', 'maxmemory', String(used - 100_000));
    await expect(redis.set('one', 'more')).rejects.toThrow(/OOM/);
  }

  test('is worked off to nothing without more memory, each event once', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    await publish();
    await fill();
    await harness.startDispatcher({ queueUrl });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
    });
    expect(harness.receiver.requests).toHaveLength(COUNT);
    await eventually(async () => {
      expect(await redis.llen('{runhook}:job-run-events:wait')).toBe(0);
      expect(await redis.zcard('{runhook}:job-run-events:prioritized')).toBe(0);
      expect(await redis.llen('{runhook}:job-run-events:active')).toBe(0);
    });
  });

  test('is worked off past malformed messages, however many stand in front', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    const malformed = createQueueBackend(queueUrl).createQueue<object>('job-run-events');
    closers.push(() => malformed.close());
    await malformed.addBulk(
      Array.from({ length: 120 }, (_, index) => ({ name: 'bad', data: {}, opts: { jobId: `bad-${index}` } })),
    );
    await publish();
    await fill();
    await harness.startDispatcher({ queueUrl });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
    });
    expect(harness.receiver.requests).toHaveLength(COUNT);
  });

  test('gets no retries: they are on record, and queued when there is room', async () => {
    await seedSubscription(harness.database, {
      accountId: harness.account.id,
      clientUrl: harness.receiver.url,
    });
    harness.receiver.respondWith(500);
    await publish();
    await fill();
    await harness.startDispatcher({ queueUrl, deliveryTimeoutMs: 1_000, retryBaseDelayMs: 5_000 });
    await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows).toHaveLength(COUNT);
    });
    harness.receiver.respondWith(200);
    await redis.config('SET', 'maxmemory', '0');
    // By way of the reconciler, which may have to wait for the lane's job to end.
    await eventually(
      async () => {
        const rows = await deliveriesOf(harness.database);
        expect(rows.filter(({ status }) => status === 'delivered')).toHaveLength(COUNT);
      },
      { timeoutMs: 240_000 },
    );
  });

  test('is not filled by publishers: above its high-water mark they are refused, and told so', async () => {
    await publish();
    const memory = await redis.info('memory');
    const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
    await redis.config('SET', 'maxmemory', String(Math.ceil(used / 0.9)));
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    const refused = publisher.publishMany(events(1));
    await expect(refused).rejects.toThrow(QueueFullError);
    await expect(refused).rejects.toThrow(/uses \d+ % of its memory/);
    await redis.config('SET', 'maxmemory', '0');
    await eventually(() => publisher.publishMany(events(1)));
  });
});
