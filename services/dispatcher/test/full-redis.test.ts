import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend, QueueFullError } from '@runhook/queue';
import { eventually, exampleEvent, queueBackends, seedSubscription, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { connectTo, startServer } from '../../../packages/queue/test/backends/redis-servers.ts';
import { type Harness, openHarness } from './harness.ts';
import { deliveriesOf } from './log-rows.ts';

const hasRedis = queueBackends().some(({ name }) => name === 'Redis');
if (!hasRedis) process.stdout.write('without Redis: a full Redis is not tested\n');

(hasRedis ? describe : describe.skip)('a Redis without free memory', () => {
  /** Number of events: several pages, which are drained one after another. */
  const COUNT = 300;
  /**
   * Number of concurrent events: fewer than the slots of an endpoint without responses, so that no delivery waits for
   * another.
   */
  const AT_ONCE = 10;
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
    const { account, database, receiver } = harness;
    await seedSubscription(database, { accountId: account.id, clientUrl: receiver.url });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  /** Creates events that take more memory than the connections of a dispatcher: Redis has memory once they are gone. */
  const events = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const event = exampleEvent('job.run.started', harness.account.jobs[0] as never, 20_000 + index);
      return { ...event, data: { ...event.data, runReason: 'x'.repeat(6_000) } } as typeof event;
    });

  async function publish(count: number): Promise<void> {
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    for (let left = count; left > 0; left -= 500) await publisher.publishMany(events(Math.min(left, 500)));
  }

  /** Sets `maxmemory` below the current use, so that Redis rejects every command that needs memory. */
  async function fill(): Promise<void> {
    const memory = await redis.info('memory');
    const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
    await redis.config('SET', 'maxmemory', String(used - 100_000));
    await expect(redis.set('one', 'more')).rejects.toThrow(/OOM/);
  }

  async function allDelivered(count: number): ReturnType<typeof deliveriesOf> {
    return await eventually(async () => {
      const rows = await deliveriesOf(harness.database);
      expect(rows.filter(({ status }) => status === 'delivered').length).toBe(count);
      return rows;
    });
  }

  /** Checks that each event was delivered by its first attempt, without a second request. */
  async function allDeliveredOnce(count: number): Promise<void> {
    const rows = await allDelivered(count);
    expect(rows.filter(({ attempt_count: attempts }) => attempts !== 1)).toEqual([]);
    expect(harness.receiver.requests).toHaveLength(count);
  }

  /** The timeout is long, so that a slow machine does not look like an endpoint that hangs. */
  const LONG_TIMEOUT = { deliveryTimeoutMs: WAIT_TIMEOUT_MS };

  test('is drained completely without more memory, with one request for each event', async () => {
    await publish(COUNT);
    await fill();
    await harness.startDispatcher({ queueUrl, ...LONG_TIMEOUT });
    await allDeliveredOnce(COUNT);
    await eventually(async () => {
      expect(await redis.llen('{runhook}:job-run-events:wait')).toBe(0);
      expect(await redis.zcard('{runhook}:job-run-events:prioritized')).toBe(0);
      expect(await redis.llen('{runhook}:job-run-events:active')).toBe(0);
    });
  });

  test('is drained by two concurrent dispatchers, with one request for each event', async () => {
    await publish(COUNT);
    await fill();
    const start = () => harness.startDispatcher({ queueUrl, ...LONG_TIMEOUT });
    await Promise.all([start(), start()]);
    await allDeliveredOnce(COUNT);
  });

  test('is drained even if malformed messages precede the events', async () => {
    const malformed = createQueueBackend(queueUrl).createQueue<object>('job-run-events');
    closers.push(() => malformed.close());
    await malformed.addBulk(
      Array.from({ length: 120 }, (_, index) => ({ name: 'bad', data: {}, opts: { jobId: `bad-${index}` } })),
    );
    await publish(COUNT);
    await fill();
    await harness.startDispatcher({ queueUrl, ...LONG_TIMEOUT });
    await allDeliveredOnce(COUNT);
  });

  test('gets no jobs of retries, which are on record and are queued once there is memory', async () => {
    // The endpoint responds once all requests have arrived: the deliveries of a failed lane would wait for its job.
    harness.receiver.respondWith(async () => {
      await harness.receiver.waitFor(AT_ONCE);
      return { status: 500 };
    });
    await publish(AT_ONCE);
    await fill();
    await harness.startDispatcher({ queueUrl, deliveryTimeoutMs: 3_000 });
    const rows = await eventually(async () => {
      const found = await deliveriesOf(harness.database);
      const states = found.map(({ status, attempt_count: attempts }) => ({ status, attempts }));
      expect(states).toEqual(Array(AT_ONCE).fill({ status: 'pending', attempts: 1 }));
      return found;
    });
    for (const { id } of rows) expect(await redis.keys(`*${id}*`)).toEqual([]);
    harness.receiver.respondWith(200);
    await redis.config('SET', 'maxmemory', '0');
    // The reconciler queues deliveries again that are overdue for longer than an attempt may take.
    await harness.database.pool.query("UPDATE deliveries SET next_attempt_at = now() - interval '1 minute'");
    await allDelivered(AT_ONCE);
    expect(harness.receiver.requests).toHaveLength(2 * AT_ONCE);
  });

  test('gets no events of publishers while more than 85 % of its memory is used, and their error gives the reason', async () => {
    await publish(COUNT);
    const memory = await redis.info('memory');
    const used = Number(/used_memory:(\d+)/.exec(memory)?.[1]);
    await redis.config('SET', 'maxmemory', String(Math.ceil(used / 0.9)));
    const publisher = createEventPublisher({ queueUrl });
    closers.push(() => publisher.close());
    const rejected = publisher.publishMany(events(1));
    await expect(rejected).rejects.toThrow(QueueFullError);
    await expect(rejected).rejects.toThrow(/uses \d+ % of its memory/);
    await redis.config('SET', 'maxmemory', '0');
    await eventually(() => publisher.publishMany(events(1)));
  });
});
