import { expect, test } from '@jest/globals';
import { WAIT_TIMEOUT_MS } from '@runhook/testing';
import { Bulkhead, bulkheadLimits } from '../../src/http/bulkhead.ts';

const [BUSY, SECOND, THIRD] = [1, 2, 3] as const;

/** Creates a bulkhead whose requests the test ends, and records the accounts of those that have begun. */
function createBulkhead(options: Partial<ConstructorParameters<typeof Bulkhead>[0]> = {}) {
  const bulkhead = new Bulkhead({
    slotsMax: 3,
    shareMax: 2,
    maxInFlight: 10,
    waitMs: WAIT_TIMEOUT_MS,
    ...options,
  });
  const startedIds: number[] = [];
  const releases: (() => void)[] = [];
  const post = (accountId: number) =>
    bulkhead.run(accountId, () => {
      startedIds.push(accountId);
      return new Promise<void>((resolve) => releases.push(resolve));
    });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    bulkhead,
    startedIds,
    post,
    /** Ends the request that has run longest. */
    async endOne() {
      releases.shift()?.();
      await settle();
    },
  };
}

test('an account has at most its share of slots, and another account overtakes its queue', async () => {
  const { bulkhead, startedIds, post, endOne } = createBulkhead();
  const requests = [BUSY, BUSY, BUSY, BUSY, SECOND].map(post);
  expect(startedIds).toEqual([BUSY, BUSY, SECOND]);
  expect(bulkhead.waitingCount).toBe(2);
  for (let endedCount = 0; endedCount < requests.length; endedCount++) await endOne();
  await Promise.all(requests);
  expect(startedIds).toEqual([BUSY, BUSY, SECOND, BUSY, BUSY]);
  expect(bulkhead.waitingCount).toBe(0);
});

test('a free slot goes to the waiting account with the fewest slots, in rotation among equals', async () => {
  const { startedIds, post, endOne } = createBulkhead({ slotsMax: 2 });
  const requests = [BUSY, BUSY, BUSY, BUSY, SECOND, SECOND, THIRD].map(post);
  for (let endedCount = 0; endedCount < requests.length; endedCount++) await endOne();
  await Promise.all(requests);
  expect(startedIds).toEqual([BUSY, BUSY, SECOND, BUSY, THIRD, SECOND, BUSY]);
});

test('a request that fails releases its slot', async () => {
  const { bulkhead } = createBulkhead({ slotsMax: 1, shareMax: 1 });
  const fail = () => bulkhead.run(BUSY, () => Promise.reject(new Error('its own')));
  await expect(Promise.allSettled([fail(), fail(), fail()])).resolves.toHaveLength(3);
  await expect(bulkhead.run(SECOND, async () => 'done')).resolves.toBe('done');
});

test('a request above the limit of its account is rejected at once, while a request of another account is accepted', async () => {
  let rejectedCount = 0;
  const { startedIds, post, endOne } = createBulkhead({ maxInFlight: 3, onRejected: () => rejectedCount++ });
  const accepted = [BUSY, BUSY, BUSY].map(post);
  await expect(post(BUSY)).rejects.toMatchObject({
    statusCode: 429,
    headers: { 'retry-after': expect.stringMatching(/^[123]$/) },
  });
  expect(rejectedCount).toBe(1);
  accepted.push(post(SECOND));
  for (let endedCount = 0; endedCount < accepted.length; endedCount++) await endOne();
  await Promise.all(accepted);
  accepted.splice(0, accepted.length, post(BUSY));
  await endOne();
  await Promise.all(accepted);
  expect(startedIds).toHaveLength(5);
});

test('a request without a slot before its deadline is a 503 and never starts', async () => {
  const { bulkhead, startedIds, post, endOne } = createBulkhead({ slotsMax: 1, shareMax: 1, waitMs: 1 });
  const firstRequest = post(BUSY);
  await expect(post(BUSY)).rejects.toMatchObject({ statusCode: 503 });
  expect(bulkhead.waitingCount).toBe(0);
  await endOne();
  await firstRequest;
  expect(startedIds).toEqual([BUSY]);
});

test('one account may use three quarters of the slots, rounded down; a pool of one connection has two slots', () => {
  expect(bulkheadLimits(10)).toEqual({ slotsMax: 8, shareMax: 6 });
  expect(bulkheadLimits(1)).toEqual({ slotsMax: 2, shareMax: 1 });
});
