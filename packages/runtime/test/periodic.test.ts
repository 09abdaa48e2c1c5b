import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { startPeriodic } from '../src/index.ts';

const EVERY_MS = 100;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test('measurements never overlap, a failed one is followed by the next, and stop() waits for the last', async () => {
  const pendingCalls: { end: () => void; fail: (error: Error) => void }[] = [];
  let calls = 0;
  const errors: unknown[] = [];
  const measure = () =>
    new Promise<void>((end, fail) => {
      calls += 1;
      pendingCalls.push({ end, fail });
    });
  const periodic = startPeriodic(EVERY_MS, measure, (error) => errors.push(error));
  const pass = () => jest.advanceTimersByTimeAsync(EVERY_MS);

  // The second measurement starts only after the first one has ended, however long it takes.
  for (let times = 0; times < 3; times++) await pass();
  expect(calls).toBe(1);
  pendingCalls[0]?.end();
  await pass();
  expect(calls).toBe(2);
  pendingCalls[1]?.fail(new Error('the second'));
  await pass();
  expect({ calls, errors }).toEqual({ calls: 3, errors: [new Error('the second')] });

  let isStopped = false;
  const stopped = periodic.stop().then(() => {
    isStopped = true;
  });
  await pass();
  expect(isStopped).toBe(false);
  pendingCalls[2]?.end();
  await stopped;
  await pass();
  expect(calls).toBe(3);
});
