import { afterEach, expect, test } from '@jest/globals';
import { JOB_RUN_EVENTS } from '@runhook/contract';
import { createQueueBackend, openEventQueue, openRedis } from '@runhook/queue';
import { createMetricsRegistry } from '@runhook/runtime';
import { createTestDatabase, createTestQueueUrl } from '@runhook/testing';
import { createForeignPublishersMeasure } from '../../src/telemetry/foreign-publishers.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function openMeasure(queueUrl: string) {
  const events = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  closers.push(() => events.close());
  const registry = createMetricsRegistry({ service: 'test' });
  const warnings: unknown[] = [];
  const measure = createForeignPublishersMeasure({
    events,
    registry,
    logger: { warn: (fields: unknown) => warnings.push(fields) },
  });
  const gauge = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
  const measureOnce = async () => {
    await measure();
    return [await gauge('runhook_foreign_queue_jobs'), await gauge('runhook_foreign_queue_version')];
  };
  return { measureOnce, warnings };
}

const { TEST_REDIS_URL } = process.env;
if (TEST_REDIS_URL === undefined) process.stderr.write('publishers with another prefix: there is no Redis\n');

(TEST_REDIS_URL ? test : test.skip)(
  'jobs of publishers with another prefix are counted, and each new prefix or other major version of BullMQ is logged once',
  async () => {
    const queueUrl = await createTestQueueUrl({ name: 'Redis' }, '');
    const redis = await openRedis(queueUrl, () => undefined);
    if (redis === null) throw new Error('no Redis');
    closers.push(() => redis.disconnect());
    const { measureOnce, warnings } = openMeasure(queueUrl);
    expect(await measureOnce()).toEqual([0, 0]);
    expect(warnings).toEqual([]);

    const meta = `{runhook}:${JOB_RUN_EVENTS}:meta`;
    await redis.lpush(`bull:${JOB_RUN_EVENTS}:wait`, '1', '2');
    expect(await measureOnce()).toEqual([2, 0]);
    await redis.incr(`a b:${JOB_RUN_EVENTS}:id`);
    await redis.zadd(`a b:${JOB_RUN_EVENTS}:prioritized`, 1, '1');
    await redis.lpush('bull:webhook-deliveries:wait', '1');
    expect(await measureOnce()).toEqual([3, 0]);
    await redis.hset(meta, 'version', 'bullmq:5.66.0');
    expect(await measureOnce()).toEqual([3, 1]);
    expect(await measureOnce()).toEqual([3, 1]);
    expect(warnings).toMatchObject([
      { foreignQueues: [{ prefix: 'bull', jobs: 2 }], version: null },
      { foreignQueues: [{ prefix: 'bull' }, { prefix: 'a b', jobs: 1 }], version: null },
      { version: 'bullmq:5.66.0' },
    ]);

    await redis.flushdb();
    expect(await measureOnce()).toEqual([0, 0]);
    expect(await redis.hget(meta, 'opts.maxLenEvents')).toBe('100');
  },
);

test('a queue in PostgreSQL reports no foreign publishers, because it has no prefix', async () => {
  const database = await createTestDatabase();
  closers.push(() => database.drop());
  const { measureOnce } = openMeasure(await createTestQueueUrl({ name: 'PostgreSQL' }, database.url));
  expect(await measureOnce()).toEqual([0, 0]);
});
