import { expect, test } from '@jest/globals';
import { DeadlineError, endedWithin, withinDeadline } from '../src/index.ts';

const never = () => new Promise<never>(() => undefined);

test('work that ends in time gives its value or its own error, also when it is no promise', async () => {
  expect(await withinDeadline(60_000, async () => 'value')).toBe('value');
  expect(await withinDeadline(60_000, () => 'value')).toBe('value');
  const failing = withinDeadline(60_000, () => {
    throw new TypeError('its own');
  });
  await expect(failing).rejects.toThrow(new TypeError('its own'));
});

test('work that does not end is left behind, and a failure that comes too late is nobody’s', async () => {
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

test('what is waited for no longer than some time leaves no timer behind, however it ends', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  await endedWithin(60_000, Promise.resolve('done'));
  await endedWithin(60_000, Promise.reject(new Error('its own')));
  await endedWithin(1, never());
  expect(timers()).toBe(before);
});
