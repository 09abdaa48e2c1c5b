import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createQueueBackend, type QueueBackend } from '@runhook/queue';
import {
  connectRedis,
  createTestQueueUrl,
  queueBackends,
  type RedisConnection,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import type { Queue } from 'bullmq';

const NAME = 'orphans';
const hasRedis = queueBackends().some(({ name }) => name === 'Redis');

/** Not tested on PostgreSQL, where the state is a column of the job's row. */
(hasRedis ? describe : describe.skip)('a job on Redis whose key is in no list', () => {
  let backend: QueueBackend;
  let queue: Queue<object>;
  let redis: RedisConnection;
  const closers: (() => unknown)[] = [];
  beforeEach(async () => {
    const queueUrl = await createTestQueueUrl({ name: 'Redis' }, '');
    backend = createQueueBackend(queueUrl, { callMs: WAIT_TIMEOUT_MS });
    queue = backend.createQueue<object>(NAME);
    closers.push(() => queue.close());
    await queue.waitUntilReady();
    redis = await connectRedis(queueUrl);
    closers.push(() => redis.close());
    await redis.send('SELECT', new URL(queueUrl).pathname.slice(1));
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const add = (jobId: string, options: object = {}) => queue.add('job', {}, { jobId, ...options });
  const drop = (list: string) => redis.send('DEL', queue.toKey(list));
  const readState = async (jobId: string) => (await backend.jobStates(queue, [jobId])).get(jobId);

  test.each([
    ['wait', {}],
    ['delayed', { delay: 3_600_000 }],
    ['prioritized', { priority: 1 }],
  ])(
    'is orphaned once its list %s is deleted, and can be added again after its key is removed',
    async (list, options) => {
      await add('lost', options);
      expect(await readState('lost')).toBe('queued');
      await drop(list);
      expect(await readState('lost')).toBe('orphaned');
      await add('lost', options);
      expect(await readState('lost')).toBe('orphaned');
      await backend.removeOrphans(queue, ['lost']);
      expect(await readState('lost')).toBeUndefined();
      await add('lost', options);
      expect(await readState('lost')).toBe('queued');
    },
  );

  test('is not orphaned while a worker has it, even after the list of active jobs is deleted', async () => {
    await add('taken');
    const worker = backend.createWorker<object>(NAME, async () => undefined, { autorun: false });
    closers.push(() => worker.close());
    await worker.getNextJob('token');
    expect(await readState('taken')).toBe('queued');
    await redis.send('DEL', `${queue.toKey('taken')}:lock`);
    expect(await readState('taken')).toBe('queued');
    await redis.send('SET', `${queue.toKey('taken')}:lock`, 'token');
    await drop('active');
    expect(await readState('taken')).toBe('queued');
    await redis.send('DEL', `${queue.toKey('taken')}:lock`);
    expect(await readState('taken')).toBe('orphaned');
  });

  test('is removed, while queued, delayed and failed jobs remain', async () => {
    await add('lost');
    await drop('wait');
    await add('waits');
    await add('job-delayed', { delay: 3_600_000 });
    await add('job-failed', { delay: 3_600_000 });
    await redis.send('ZREM', queue.toKey('delayed'), 'job-failed');
    await redis.send('HSET', queue.toKey('job-failed'), 'finishedOn', '1');
    await redis.send('ZADD', queue.toKey('failed'), '1', 'job-failed');
    const jobIds = ['lost', 'waits', 'job-delayed', 'job-failed', 'none'];
    await backend.removeOrphans(queue, jobIds);
    expect(await backend.jobStates(queue, jobIds)).toEqual(
      new Map([
        ['waits', 'queued'],
        ['job-delayed', 'queued'],
        ['job-failed', 'ended'],
      ]),
    );
  });

  test('is distinguished from the jobs of a long list, and is not removed if the list has more than 2,000,000 entries', async () => {
    await add('lost');
    await drop('wait');
    await add('first');
    const addJobs = async (count: number) => {
      // One call for all would make the server reply BUSY to concurrent tests.
      for (let remaining = count; remaining > 0; remaining -= FILL_MAX)
        await redis.send('EVAL', FILL, '1', queue.toKey('wait'), String(Math.min(remaining, FILL_MAX)));
    };
    await addJobs(12_000);
    await add('last');
    const jobIds = ['lost', 'first', 'last'];
    expect([...(await backend.jobStates(queue, jobIds)).values()]).toEqual(['orphaned', 'queued', 'queued']);
    await addJobs(50_000);
    expect([...(await backend.jobStates(queue, jobIds)).values()]).toEqual(['orphaned', 'queued', 'queued']);
    await addJobs(1_990_000);
    expect([...(await backend.jobStates(queue, jobIds)).values()]).toEqual(Array(3).fill('unsearched'));
    await backend.removeOrphans(queue, jobIds);
    expect((await backend.jobStates(queue, jobIds)).size).toBe(3);
  });
});

const FILL_MAX = 50_000;
const FILL = `for index = 1, tonumber(ARGV[1]) do redis.call('LPUSH', KEYS[1], 'other-' .. index) end`;
