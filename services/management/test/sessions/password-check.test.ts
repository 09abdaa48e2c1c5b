import { expect, test } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import {
  createPasswordCheck,
  DUMMY_HASH,
  type PasswordCheckSlot,
} from '../../src/sessions/password-check.ts';

test('two passwords are checked concurrently, thirty wait in order, and a further one gets no slot', async () => {
  const finishers: (() => void)[] = [];
  const startedPasswords: string[] = [];
  const passwords = createPasswordCheck((_hash, password) => {
    startedPasswords.push(password);
    return new Promise((resolve) => finishers.push(() => resolve(true)));
  });
  const slots: PasswordCheckSlot[] = [];
  for (let slot = passwords.acquireSlot(); slot !== null; slot = passwords.acquireSlot()) slots.push(slot);
  expect(slots).toHaveLength(32);
  const checks = slots.map((slot, index) => slot.isCorrect('hash', String(index)));
  expect(startedPasswords).toEqual(['0', '1']);
  for (let endedCount = 0; endedCount < slots.length; endedCount++) {
    finishers.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await Promise.all(checks)).toEqual(slots.map(() => true));
  expect(startedPasswords).toEqual(slots.map((_, index) => String(index)));
  expect(passwords.acquireSlot()).toBeNull();
  slots[0]?.release();
  slots[0]?.release();
  expect(passwords.acquireSlot()).not.toBeNull();
  expect(passwords.acquireSlot()).toBeNull();
});

test('a password check without a user fails, and verifies a hash with the parameters of a real one', async () => {
  const parametersOf = (passwordHash: string) => passwordHash.split('$').slice(0, 4);
  expect(parametersOf(DUMMY_HASH)).toEqual(parametersOf(await hash('somebody’s')));
  expect(await createPasswordCheck().acquireSlot()?.isCorrect(null, 'anything')).toBe(false);
});
