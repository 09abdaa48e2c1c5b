import { afterEach, expect, test } from '@jest/globals';
import { createQueueBackend } from '@runhook/queue';
import { createTestQueueUrl, eventually, queueBackends } from '@runhook/testing';
import { withLongWaits } from '../../src/backends/redis/at-rest.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test.each(queueBackends().filter(({ name }) => name === 'Redis'))(
  'a worker waits for a job by several waits, and looks for one after the last of them, on $name',
  async (kind) => {
    const backend = createQueueBackend(await createTestQueueUrl(kind, ''));
    const queue = backend.createQueue('rest');
    closers.push(() => queue.close());
    const processed: unknown[] = [];
    const worker = backend.createWorker('rest', async ({ data }) => processed.push(data), {
      drainDelay: 0.4,
    });
    closers.push(() => worker.close());
    const done: string[] = [];
    const ofWorker = worker.getBackend();
    const look = ofWorker.moveToActive.bind(ofWorker);
    ofWorker.moveToActive = (...args) => {
      done.push('look');
      return look(...args);
    };
    const wait = ofWorker.waitForJob.bind(ofWorker);
    ofWorker.waitForJob = (seconds) => {
      done.push('wait');
      return wait(seconds);
    };
    withLongWaits(worker, 0.1);
    await eventually(() =>
      expect(done.join(' ')).toContain('look wait wait wait wait look wait wait wait wait look'),
    );
    await queue.add('job', 'within a wait');
    await eventually(() => expect(processed).toEqual(['within a wait']));
  },
);
