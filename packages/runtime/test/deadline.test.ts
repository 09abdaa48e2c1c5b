import { expect, test } from '@jest/globals';
import { DeadlineError, waitAtMost, withinDeadline } from '../src/index.ts';

const never = () => new Promise<never>(() => undefined);

test('work that ends in time gives its value or its own error, even if it is not a promise', async () => {
  expect(await withinDeadline(60_000, async () => 'value')).toBe('value');
  expect(await withinDeadline(60_000, () => 'value')).toBe('value');
  const failing = withinDeadline(60_000, () => {
    throw new TypeError('its own');
  });
  await expect(failing).rejects.toThrow(new TypeError('its own'));
});

test('work that exceeds its deadline is abandoned, and its later failure is ignored', async () => {
  await expect(withinDeadline(1, never)).rejects.toThrow(DeadlineError);
  let failLate: (error: Error) => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    failLate = reject;
  });
  await expect(withinDeadline(1, () => late)).rejects.toThrow('did not end within 1 ms');
  // An unhandled rejection would fail this test.
  failLate(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});

test('waitAtMost() leaves no timer, however the work ends', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  await waitAtMost(60_000, Promise.resolve('done'));
  await waitAtMost(60_000, Promise.reject(new Error('its own')));
  await waitAtMost(1, never());
  expect(timers()).toBe(before);
});
