import { expect, test } from '@jest/globals';
import { DeadlineError, withinDeadline } from '../src/index.ts';

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
  // Were it not handled, it would fail this test.
  failLate(new Error('too late'));
  await new Promise((resolve) => setImmediate(resolve));
});
