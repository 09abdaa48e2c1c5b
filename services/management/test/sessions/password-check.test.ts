import { describe, expect, test } from '@jest/globals';
import { hash } from '@node-rs/argon2';
import {
  createPasswordCheck,
  DUMMY_HASH,
  type PasswordCheckRequest,
} from '../../src/sessions/password-check.ts';

/** A password check whose verifications end one after another, when the test says so. */
function openCheck() {
  const finishers: (() => void)[] = [];
  const started: string[] = [];
  const passwords = createPasswordCheck((_hash, password) => {
    started.push(password);
    return new Promise((resolve) => finishers.push(() => resolve(true)));
  });
  return {
    started,
    /** Number of verifications in progress. */
    running: () => finishers.length,
    /** Resolves with false if there was no slot. */
    async check(name: string, request: Partial<PasswordCheckRequest> = {}): Promise<boolean> {
      const slot = await passwords.acquireSlot({ isRecognized: false, group: name, failures: 0, ...request });
      if (!slot) return false;
      try {
        return await slot.isCorrect('hash', name);
      } finally {
        slot.release();
      }
    },
    /** Ends the oldest verification in progress. */
    async finishOne() {
      finishers.shift()?.();
      await settle();
    },
  };
}

/** Lets the promises that are ready run their continuations. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(index));

/** Starts checks of a flood: `nameOf` gives the network of each. */
async function flood(
  { check }: ReturnType<typeof openCheck>,
  count: number,
  request: (name: string) => Partial<PasswordCheckRequest> = () => ({}),
): Promise<Promise<boolean>[]> {
  const checks = numbers(count).map((name) => check(name, request(name)));
  await settle();
  return checks;
}

describe('password checks', () => {
  test('run two at once, 128 more of other networks wait in order, and a further one is rejected', async () => {
    const passwords = openCheck();
    const checks = await flood(passwords, 130);
    expect(passwords.started).toEqual(['0', '1']);
    expect(await passwords.check('too many')).toBe(false);
    while (passwords.running() > 0) await passwords.finishOne();
    expect(await Promise.all(checks)).toEqual(checks.map(() => true));
    expect(passwords.started).toEqual(numbers(130));
  });

  test('of a recognized device start at once during a flood from any number of networks', async () => {
    const passwords = openCheck();
    await flood(passwords, 500);
    void passwords.check('owner', { isRecognized: true });
    await settle();
    expect(passwords.started).toEqual(['0', '1', 'owner']);
  });

  test('of a recognized device come after at most one check of each other user, however many these send', async () => {
    const passwords = openCheck();
    await flood(passwords, 100, () => ({ isRecognized: true, group: 'another user' }));
    void passwords.check('owner', { isRecognized: true });
    await settle();
    await passwords.finishOne();
    await passwords.finishOne();
    expect(passwords.started).toEqual(['0', '1', 'owner']);
  });

  test('of a network come after at most one check of each other network', async () => {
    const passwords = openCheck();
    await flood(passwords, 1_000, (name) => ({ group: `network ${Number(name) % 3}` }));
    void passwords.check('owner');
    await settle();
    for (let ended = 0; ended < 4; ended++) await passwords.finishOne();
    expect(passwords.started).toEqual(['0', '1', '2', '3', '4', 'owner']);
  });

  test('of a client without failures come before those of networks that have failed', async () => {
    const passwords = openCheck();
    const checks = await flood(passwords, 500, () => ({ failures: 1 }));
    void passwords.check('owner');
    await settle();
    await passwords.finishOne();
    expect(passwords.started).toEqual(['0', '1', 'owner']);
    // The owner took the place of the last one of the flood.
    expect(await Promise.all(checks.slice(129))).toEqual(checks.slice(129).map(() => false));
  });

  test('of a client that mistyped its password are served although new networks arrive continuously', async () => {
    const passwords = openCheck();
    await flood(passwords, 48);
    void passwords.check('owner', { failures: 2 });
    await settle();
    let arrived = 48;
    while (passwords.running() > 0 && !passwords.started.includes('owner')) {
      void passwords.check(String(arrived++));
      await passwords.finishOne();
    }
    expect(passwords.started).toContain('owner');
    expect(arrived).toBeLessThanOrEqual(4 * 48);
  });
});

test('a password check without a user fails, and verifies a hash with the parameters of a real one', async () => {
  const parametersOf = (passwordHash: string) => passwordHash.split('$').slice(0, 4);
  expect(parametersOf(DUMMY_HASH)).toEqual(parametersOf(await hash('somebody’s')));
  const slot = await createPasswordCheck().acquireSlot({ isRecognized: false, group: 'a', failures: 0 });
  expect(await slot?.isCorrect(null, 'anything')).toBe(false);
});
