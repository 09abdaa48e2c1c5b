import { expect, test } from '@jest/globals';
import { startPeriodic } from '../src/index.ts';

test('measurements never overlap, one that fails is followed by the next, and a stop waits for the last', async () => {
  let calls = 0;
  let underway = 0;
  let atOnceMax = 0;
  const errors: unknown[] = [];
  let isEnough: () => void = () => undefined;
  const enough = new Promise<void>((resolve) => {
    isEnough = resolve;
  });
  const periodic = startPeriodic(
    1,
    async () => {
      calls += 1;
      underway += 1;
      atOnceMax = Math.max(atOnceMax, underway);
      await new Promise((settle) => setTimeout(settle, 5));
      underway -= 1;
      if (calls > 4) isEnough();
      if (calls === 2) throw new Error('the second');
    },
    (error) => errors.push(error),
  );
  await enough;
  await periodic.stop();
  expect({ atOnceMax, underway, errors }).toEqual({
    atOnceMax: 1,
    underway: 0,
    errors: [new Error('the second')],
  });
  const callsAtStop = calls;
  await new Promise((settle) => setTimeout(settle, 20));
  expect(calls).toBe(callsAtStop);
});
