import { expect, test } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import { createPasswordCheck, NOBODYS_HASH, type PasswordPlace } from '../../src/sessions/password-check.ts';

test('few passwords are checked concurrently, the others in order, and only a limited number waits', async () => {
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const passwords = createPasswordCheck((_hash, password) => {
    begun.push(password);
    return new Promise((resolve) => ends.push(() => resolve(true)));
  });
  const places: PasswordPlace[] = [];
  for (let place = passwords.enter(); place !== null; place = passwords.enter()) places.push(place);
  expect(places).toHaveLength(32);
  const checks = places.map((place, index) => place.isRight('hash', String(index)));
  expect(begun).toEqual(['0', '1']);
  for (let ended = 0; ended < places.length; ended++) {
    ends.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await Promise.all(checks)).toEqual(places.map(() => true));
  expect(begun).toEqual(places.map((_, index) => String(index)));
  expect(passwords.enter()).toBeNull();
  places[0]?.leave();
  places[0]?.leave();
  expect(passwords.enter()).not.toBeNull();
  expect(passwords.enter()).toBeNull();
});

test('a check without a user takes as long as a real one, because the hash has the same parameters', async () => {
  const parametersOf = (passwordHash: string) => passwordHash.split('$').slice(0, 4);
  expect(parametersOf(NOBODYS_HASH)).toEqual(parametersOf(await hash('somebody’s')));
  expect(await createPasswordCheck().enter()?.isRight(null, 'anything')).toBe(false);
});
