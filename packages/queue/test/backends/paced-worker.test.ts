import { afterEach, describe, expect, test } from '@jest/globals';
import { createTestDatabase, createTestQueueUrl, eventually, queueBackends } from '@runhook/testing';
import { createQueueBackend } from '../../src/index.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe.each(queueBackends())('a worker of the queue on $name', (kind) => {
  test('begins what it has fetched before it fetches hundreds more, and then has as many as it may', async () => {
    const CONCURRENCY = 200;
    const database = await createTestDatabase();
    closers.push(() => database.drop());
    const backend = createQueueBackend(await createTestQueueUrl(kind, database.url));
    const queue = backend.createQueue<{ index: number }>('paced');
    closers.push(() => queue.close());
    await queue.addBulk(Array.from({ length: 300 }, (_, index) => ({ name: 'job', data: { index } })));
    let fetchedAtFirst = Number.NaN;
    let begun = 0;
    let end: () => void = () => undefined;
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = backend.createWorker<{ index: number }>(
      'paced',
      async () => {
        begun += 1;
        if (begun === 1) fetchedAtFirst = await queue.getActiveCount();
        await ended;
      },
      { concurrency: CONCURRENCY },
    );
    closers.push(() => worker.close());
    closers.push(async () => end());
    worker.on('error', () => undefined);
    await eventually(() => expect(begun).toBe(CONCURRENCY));
    expect(fetchedAtFirst).toBeLessThan(CONCURRENCY / 2);
    expect(await queue.getActiveCount()).toBe(CONCURRENCY);
    end();
    await eventually(() => expect(begun).toBe(300));
  });
});
