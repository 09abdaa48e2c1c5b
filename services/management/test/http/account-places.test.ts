import { expect, test } from '@jest/globals';
import { IN_VAIN_MS } from '@runhook/testing';
import { AccountPlaces, placesOf } from '../../src/http/account-places.ts';

const [FLOOD, OTHER, THIRD] = [1, 2, 3] as const;

/** Creates requests that end on command and records which ones have begun. */
function openPlaces(options: Partial<ConstructorParameters<typeof AccountPlaces>[0]> = {}) {
  const places = new AccountPlaces({
    placesMax: 3,
    shareMax: 2,
    hereMax: 10,
    waitMs: IN_VAIN_MS,
    ...options,
  });
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const post = (accountId: number) =>
    places.run(accountId, () => {
      begun.push(accountId);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    places,
    begun,
    post,
    /** Ends the request that has run longest. */
    async endOne() {
      ends.shift()?.();
      await settle();
    },
  };
}

test('an account has at most its share of slots, and another account overtakes its queue', async () => {
  const { places, begun, post, endOne } = openPlaces();
  const all = [FLOOD, FLOOD, FLOOD, FLOOD, OTHER].map(post);
  expect(begun).toEqual([FLOOD, FLOOD, OTHER]);
  expect(places.waitingCount).toBe(2);
  for (let ended = 0; ended < all.length; ended++) await endOne();
  await Promise.all(all);
  expect(begun).toEqual([FLOOD, FLOOD, OTHER, FLOOD, FLOOD]);
  expect(places.waitingCount).toBe(0);
});

test('a free slot goes to the account with the fewest, in rotation among equals', async () => {
  const { begun, post, endOne } = openPlaces({ placesMax: 2 });
  const all = [FLOOD, FLOOD, FLOOD, FLOOD, OTHER, OTHER, THIRD].map(post);
  for (let ended = 0; ended < all.length; ended++) await endOne();
  await Promise.all(all);
  expect(begun).toEqual([FLOOD, FLOOD, OTHER, FLOOD, THIRD, OTHER, FLOOD]);
});

test('a request that fails releases its slot', async () => {
  const { places } = openPlaces({ placesMax: 1, shareMax: 1 });
  const fail = () => places.run(FLOOD, () => Promise.reject(new Error('its own')));
  await expect(Promise.allSettled([fail(), fail(), fail()])).resolves.toHaveLength(3);
  await expect(places.run(OTHER, async () => 'done')).resolves.toBe('done');
});

test('a request above the limit of its account is rejected at once, while others are accepted', async () => {
  let refused = 0;
  const { begun, post, endOne } = openPlaces({ hereMax: 3, onRefused: () => refused++ });
  const here = [FLOOD, FLOOD, FLOOD].map(post);
  await expect(post(FLOOD)).rejects.toMatchObject({ statusCode: 429, headers: { 'retry-after': '1' } });
  expect(refused).toBe(1);
  here.push(post(OTHER));
  for (let ended = 0; ended < here.length; ended++) await endOne();
  await Promise.all(here);
  here.splice(0, here.length, post(FLOOD));
  await endOne();
  await Promise.all(here);
  expect(begun).toHaveLength(5);
});

test('a request without a slot before its deadline is a 503 and never starts', async () => {
  const { places, begun, post, endOne } = openPlaces({ placesMax: 1, shareMax: 1, waitMs: 1 });
  const first = post(FLOOD);
  await expect(post(FLOOD)).rejects.toMatchObject({ statusCode: 503 });
  expect(places.waitingCount).toBe(0);
  await endOne();
  await first;
  expect(begun).toEqual([FLOOD]);
});

test('no account may occupy all connections of a pool, regardless of its size', () => {
  expect(placesOf(10)).toEqual({ placesMax: 8, shareMax: 6 });
  expect(placesOf(1)).toEqual({ placesMax: 2, shareMax: 1 });
});
