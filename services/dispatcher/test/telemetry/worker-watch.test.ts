import { expect, test } from '@jest/globals';
import { createWorkerWatch, type JobsInFlight } from '../../src/telemetry/worker-liveness.ts';

function setUp(nextJobIds: (string | null | Error)[], isPaused = false) {
  const jobsInFlight: JobsInFlight = { current: 0, started: 0 };
  let now = 0;
  let isRunning = true;
  const watch = createWorkerWatch({
    worker: { name: 'queue', isRunning: () => isRunning },
    jobsInFlight,
    concurrency: 2,
    stuckAfterMs: 6_000,
    nowMs: () => now,
    nextJob: async () => {
      const jobId = nextJobIds.shift();
      if (jobId instanceof Error) throw jobId;
      return jobId == null ? null : { id: jobId, isPaused };
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

test('a worker with capacity is reported as stuck when the same job stays the next one for 6 s', async () => {
  const { watch, after } = setUp(['a', 'a', 'a', 'a']);
  await watch.poll();
  for (const _ of [1, 2, 3]) {
    await watch.poll();
    watch.check();
    after(2_000);
  }
  await watch.poll();
  expect(() => watch.check()).toThrow(expect.objectContaining({ code: 'WORKER_STUCK' }));
});

test('a worker is not stuck when other workers take the jobs', async () => {
  const { watch, after } = setUp(['a', 'b', 'c', 'd', 'e', 'f']);
  for (let poll = 0; poll < 6; poll += 1) {
    await watch.poll();
    watch.check();
    after(5_000);
  }
});

test('a worker is not stuck when it has no capacity or starts other jobs meanwhile', async () => {
  const { watch, jobsInFlight, after } = setUp(Array(20).fill('a'));
  jobsInFlight.current = 2;
  for (let poll = 0; poll < 5; poll += 1) {
    await watch.poll();
    after(10_000);
    watch.check();
  }
  jobsInFlight.current = 0;
  for (let poll = 0; poll < 5; poll += 1) {
    jobsInFlight.started += 1;
    await watch.poll();
    after(10_000);
    watch.check();
  }
});

test('a worker is not stuck while the queue does not respond', async () => {
  const { watch, after } = setUp(['a', new Error('gone'), 'a', 'a']);
  await watch.poll();
  await watch.poll();
  after(4_000);
  await expect(watch.poll()).rejects.toThrow('gone');
  after(4_000);
  watch.check();
  await watch.poll();
  after(4_000);
  watch.check();
});

test('a worker is not stuck while its queue is paused', async () => {
  const { watch, after } = setUp(Array(5).fill('a'), true);
  for (let poll = 0; poll < 5; poll += 1) {
    await watch.poll();
    watch.check();
    after(10_000);
  }
});

test('a worker is not stuck when it takes the job between two polls', async () => {
  const { watch, jobsInFlight, after } = setUp(['a', 'a']);
  await watch.poll();
  await watch.poll();
  after(10_000);
  jobsInFlight.started += 1;
  watch.check();
});

test('a worker whose loop has ended is reported as stopped', () => {
  const { watch, end } = setUp([]);
  watch.check();
  end();
  expect(() => watch.check()).toThrow(expect.objectContaining({ code: 'WORKER_STOPPED' }));
});
