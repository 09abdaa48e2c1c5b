import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestQueueUrl, eventually, queueBackends } from '@runhook/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const onRedis = test.each(queueBackends().filter(({ name }) => name === 'Redis'));

/** A worker that nobody wakes looks by itself after this: longer than a test may take, so that a lost job fails it. */
const drainDelay = 600;

async function openQueue(kind: { name: 'PostgreSQL' | 'Redis' }) {
  const backend = createQueueBackend(await createTestQueueUrl(kind, ''));
  const queue = backend.createQueue<{ index: number }>('last');
  closers.push(() => queue.close());
  const processed: number[] = [];
  const startWorker = (concurrency: number) => {
    const worker = backend.createWorker<{ index: number }>(
      'last',
      async ({ data }) => void processed.push(data.index),
      { concurrency, drainDelay, removeOnComplete: { count: 0 } },
    );
    closers.push(() => worker.close());
    return worker;
  };
  const indexes = () => [...processed].sort((a, b) => a - b);
  return { queue, startWorker, indexes };
}

onRedis('a job that is alone in line is looked for once, on $name', async (kind) => {
  const { queue, startWorker, indexes } = await openQueue(kind);
  let looks = 0;
  const backend = startWorker(10).getBackend() as unknown as {
    execCommand(client: unknown, name: string, args: unknown): Promise<unknown>;
  };
  const execCommand = backend.execCommand.bind(backend);
  backend.execCommand = async (client, name, args) => {
    const answer = await execCommand(client, name, args);
    if (name === 'moveToActive') looks += 1;
    return answer;
  };
  // A job that the first look of all finds leaves its mark behind, for which the worker looks once in vain.
  await eventually(() => expect(looks).toBe(1));
  await queue.add('job', { index: 0 });
  await eventually(() => expect(indexes()).toEqual([0]));
  await eventually(async () => expect(await queue.getActiveCount()).toBe(0));
  looks = 0;
  for (let index = 1; index <= 20; index += 1) {
    await queue.add('job', { index });
    await eventually(() => expect(indexes()).toHaveLength(index + 1));
    await eventually(async () => expect(await queue.getActiveCount()).toBe(0));
  }
  expect(looks).toBe(20);
});

onRedis('no job is left lying, whatever else comes at the same time, on $name', async (kind) => {
  const { queue, startWorker, indexes } = await openQueue(kind);
  for (const concurrency of [1, 3, 50]) startWorker(concurrency);
  let index = 0;
  const next = () => ({ name: 'job', data: { index: index++ } });
  for (let round = 0; round < 150; round += 1) {
    const added = Array.from({ length: 1 + (round % 4) }, next);
    await Promise.all([
      queue.addBulk(added),
      round % 3 === 0 && queue.add('job', next().data, { priority: 1 }),
      round % 5 === 0 && queue.add('job', next().data, { delay: 1 + (round % 7) }),
    ]);
    // By turns all at once, and each alone in line.
    if (round % 2 === 0) await eventually(() => expect(indexes()).toHaveLength(index));
  }
  await eventually(() => expect(indexes()).toEqual(Array.from({ length: index }, (_, one) => one)));
});
