import { expect, test } from '@jest/globals';
import { createWorkerWatch, type JobsInFlight } from '../../src/telemetry/worker-liveness.ts';

function setUp(firsts: (string | null | Error)[], isPaused = false) {
  const jobsInFlight: JobsInFlight = { now: 0, begun: 0 };
  let now = 0;
  let isRunning = true;
  const watch = createWorkerWatch({
    worker: { name: 'queue', isRunning: () => isRunning },
    jobsInFlight,
    concurrency: 2,
    stuckAfterMs: 6_000,
    nowMs: () => now,
    firstInLine: async () => {
      const first = firsts.shift();
      if (first instanceof Error) throw first;
      return first == null ? null : { id: first, isPaused };
    },
  });
  return {
    watch,
    jobsInFlight,
    after: (ms: number) => {
      now += ms;
    },
    end: () => {
      isRunning = false;
    },
  };
}

test('a worker is stuck when the same job stays the next one while it has a free slot', async () => {
  const { watch, after } = setUp(['a', 'a', 'a', 'a']);
  await watch.look();
  for (const _ of [1, 2, 3]) {
    await watch.look();
    watch.check();
    after(2_000);
  }
  await watch.look();
  expect(() => watch.check()).toThrow(expect.objectContaining({ code: 'WORKER_STUCK' }));
});

test('a worker is not stuck when other workers take the jobs', async () => {
  const { watch, after } = setUp(['a', 'b', 'c', 'd', 'e', 'f']);
  for (let look = 0; look < 6; look += 1) {
    await watch.look();
    watch.check();
    after(5_000);
  }
});

test('a worker is not stuck when its slots are occupied or it takes other jobs meanwhile', async () => {
  const { watch, jobsInFlight, after } = setUp(Array(20).fill('a'));
  jobsInFlight.now = 2;
  for (let look = 0; look < 5; look += 1) {
    await watch.look();
    after(10_000);
    watch.check();
  }
  jobsInFlight.now = 0;
  for (let look = 0; look < 5; look += 1) {
    jobsInFlight.begun += 1;
    await watch.look();
    after(10_000);
    watch.check();
  }
});

test('a worker is not stuck while the queue does not respond', async () => {
  const { watch, after } = setUp(['a', new Error('gone'), 'a', 'a']);
  await watch.look();
  await watch.look();
  after(4_000);
  await expect(watch.look()).rejects.toThrow('gone');
  after(4_000);
  watch.check();
  await watch.look();
  after(4_000);
  watch.check();
});

test('a worker is not stuck while its queue is paused', async () => {
  const { watch, after } = setUp(Array(5).fill('a'), true);
  for (let look = 0; look < 5; look += 1) {
    await watch.look();
    watch.check();
    after(10_000);
  }
});

test('a worker is not stuck when it takes the job between two polls', async () => {
  const { watch, jobsInFlight, after } = setUp(['a', 'a']);
  await watch.look();
  await watch.look();
  after(10_000);
  jobsInFlight.begun += 1;
  watch.check();
});

test('a worker whose loop has ended is reported as stopped', () => {
  const { watch, end } = setUp([]);
  watch.check();
  end();
  expect(() => watch.check()).toThrow(expect.objectContaining({ code: 'WORKER_STOPPED' }));
});
