import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createQueueBackend, type QueueBackend, UnrecoverableError } from '@runhook/queue';
import {
  createTestDatabase,
  createTestQueue,
  eventually,
  queueBackends,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import pg from 'pg';

const NAME = 'states';

/** BullMQ may change its storage with a version; then its own result differs from Runhook's. */
describe.each(queueBackends())('the states of many jobs, on $name', (kind) => {
  let backend: QueueBackend;
  const closers: (() => Promise<unknown>)[] = [];
  beforeEach(async () => {
    const testQueue = await createTestQueue(kind);
    closers.push(() => testQueue.drop());
    backend = createQueueBackend(testQueue.url, { callMs: WAIT_TIMEOUT_MS });
  });
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  test('match the states that BullMQ returns for each job', async () => {
    const queue = backend.createQueue<{ end: string }>(NAME);
    closers.push(() => queue.close());
    await queue.waitUntilReady();
    expect(await backend.hasFailed(queue)).toBe(false);
    const add = (jobId: string, options: object = {}) =>
      queue.add('job', { end: jobId }, { jobId, ...options });
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    for (const jobId of ['to-completed', 'to-failed', 'to-again', 'to-active']) await add(jobId);
    const worker = backend.createWorker<{ end: string }>(
      NAME,
      async ({ data }) => {
        if (data.end === 'to-active') await released;
        if (data.end === 'to-failed' || data.end === 'to-again') throw new UnrecoverableError('failed');
      },
      { concurrency: 4 },
    );
    worker.on('error', () => undefined);
    closers.push(async () => {
      release();
      await worker.close();
    });
    const readState = (jobId: string) => queue.getJobState(jobId);
    await eventually(async () => {
      expect([
        await readState('to-completed'),
        await readState('to-failed'),
        await readState('to-again'),
      ]).toEqual(['completed', 'failed', 'failed']);
      expect(await readState('to-active')).toBe('active');
    });
    expect(await backend.hasFailed(queue)).toBe(true);
    await queue.pause();
    await (await queue.getJob('to-again'))?.retry();
    await add('to-waiting');
    await add('to-delayed', { delay: 3_600_000 });
    await add('to-behind', { priority: 1 });

    const jobIds = ['completed', 'failed', 'again', 'active', 'waiting', 'delayed', 'behind', 'none'].map(
      (end) => `to-${end}`,
    );
    const states = await Promise.all(jobIds.map(readState));
    expect(new Set(states).size).toBeGreaterThan(5);
    const endedStates = new Set(['completed', 'failed']);
    const expected = jobIds.flatMap((jobId, index) => {
      if (states[index] === 'unknown') return [];
      return [[jobId, endedStates.has(states[index] as string) ? 'ended' : 'queued'] as const];
    });
    expect(await backend.jobStates(queue, jobIds)).toEqual(new Map(expected));
    expect(expected).toHaveLength(7);
    expect(await backend.findExisting(queue, jobIds)).toEqual(new Set(expected.map(([jobId]) => jobId)));
    const failed = jobIds.filter((_, index) => states[index] === 'failed');
    expect(failed.length).toBeGreaterThan(0);
    expect(await backend.findFailed(queue, jobIds)).toEqual(new Set(failed));
  });

  test('are returned for no job and for a thousand jobs', async () => {
    const queue = backend.createQueue<object>(NAME);
    closers.push(() => queue.close());
    await queue.waitUntilReady();
    expect(await backend.jobStates(queue, [])).toEqual(new Map());
    const jobs = Array.from({ length: 1_000 }, (_, index) => ({
      name: 'job',
      data: {},
      opts: { jobId: `job-${index}` },
    }));
    await queue.addBulk(jobs.filter((_, index) => index % 3 === 0));
    const states = await backend.jobStates(
      queue,
      jobs.map(({ opts }) => opts.jobId),
    );
    expect(states.size).toBe(334);
    expect(new Set(states.values())).toEqual(new Set(['queued']));
  });
});

/** The check runs with each published event, and BullMQ's count reads every job. */
test('checking whether any job has failed reads no waiting job in PostgreSQL', async () => {
  const database = await createTestDatabase();
  const client = new pg.Client(database.url);
  const backend = createQueueBackend(database.url);
  const queue = backend.createQueue<object>(NAME);
  try {
    await client.connect();
    await queue.waitUntilReady();
    await queue.addBulk(Array.from({ length: 2_000 }, () => ({ name: 'job', data: {} })));
    await client.query('ANALYZE bullmq.job');
    await queue.close();
    const before = await countJobsRead(client);
    const other = backend.createQueue<object>(NAME);
    for (let call = 0; call < 5; call += 1) expect(await backend.hasFailed(other)).toBe(false);
    await other.close();
    expect((await countJobsRead(client)) - before).toBeLessThan(100);
  } finally {
    await client.end();
    await database.drop();
  }
});

/** Returns the number of jobs that were read, once other connections have ended and reported their statistics. */
async function countJobsRead(client: pg.Client): Promise<number> {
  await eventually(async () => {
    const { rows } = await client.query(
      'SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
    );
    expect(rows).toHaveLength(0);
  });
  const { rows } = await client.query<{ read: number }>(
    `SELECT (seq_tup_read + idx_tup_fetch)::int AS read FROM pg_stat_user_tables
     WHERE schemaname = 'bullmq' AND relname = 'job'`,
  );
  return rows[0]?.read as number;
}
