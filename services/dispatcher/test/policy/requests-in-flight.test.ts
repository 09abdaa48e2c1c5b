import { describe, expect, test } from '@jest/globals';
import { Permits, permitsOf } from '../../src/policy/permits.ts';
import { RequestsInFlight } from '../../src/policy/requests-in-flight.ts';

const macrotask = () => new Promise((resolve) => setImmediate(resolve));

test('an account may have as many permits as are free, and a further account always finds some', async () => {
  const permits = new RequestsInFlight(384).permits.firstAttempts;
  const acquireAll = (accountId: number) => {
    let count = 0;
    while (permits.tryAcquire(accountId, 12) > 0) count += 12;
    return count;
  };
  expect([1, 2, 3].map(acquireAll)).toEqual([768, 384, 192]);
  permits.release(1, 768);
  expect(acquireAll(3)).toBe(384);
  // The first use of an account may exceed its share.
  expect(permits.tryAcquire(4, 850)).toBe(850);
  expect(permits.tryAcquire(4, 1)).toBe(0);
});

describe('events that wait for permits', () => {
  const LONG_MS = 3_600_000;

  test('get them in order, and each account has as many slots for waiting events as are free', async () => {
    const permits = new Permits(16, 8, LONG_MS);
    const acquired: [index: number, permits: number][] = [];
    const acquire = (index: number, accountId: number, count: number, slots: number) =>
      void permits
        .acquire(accountId, count, slots)
        .then((permitCount) => acquired.push([index, permitCount]));
    expect(await permits.acquire(1, 8, 1)).toBe(8);
    acquire(0, 1, 3, 3);
    acquire(1, 1, 2, 1);
    acquire(2, 1, 1, 1);
    await macrotask();
    expect(acquired).toEqual([[2, 0]]);
    expect(await permits.acquire(2, 4, 1)).toBe(4);
    acquire(3, 2, 4, 2);
    acquire(4, 2, 1, 1);
    await macrotask();
    expect(acquired.slice(1)).toEqual([[4, 0]]);
    permits.release(2, 4);
    permits.release(1, 8);
    await macrotask();
    expect(acquired.slice(2)).toEqual([
      [3, 4],
      [0, 3],
      [1, 2],
    ]);
  });

  test('get none once the account has released none for a time', async () => {
    const permits = new Permits(16, 8, 5);
    expect(await permits.acquire(1, 8, 1)).toBe(8);
    let isOver = false;
    const waiting = Promise.all([permits.acquire(1, 1, 1), permits.acquire(1, 1, 1)]).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      permits.release(1, 0);
      await macrotask();
    }
    expect(await waiting).toEqual([0, 0]);
    permits.release(1, 8);
    expect(await permits.acquire(1, 1, 1)).toBe(1);
  });
});

test('an event whose timeout has passed gets no permits, and the events behind it get theirs', async () => {
  const permits = new Permits(16, 8, 3_600_000);
  expect(permits.tryAcquire(1, 7)).toBe(7);
  const waiting = [permits.acquire(1, 3, 1, 5), permits.acquire(1, 2, 1)];
  expect(await Promise.all(waiting)).toEqual([0, 2]);
});

test('many attempts of a long event have fewer permits each, so that the account can have them and another account finds some', () => {
  const permits = new RequestsInFlight(384).permits.firstAttempts;
  const event = { data: { runStatusMessage: 'x'.repeat(131_072) } as never };
  const counts = [1, 50, 500].map((attemptCount) => permits.forEach(event, attemptCount));
  expect(counts).toEqual([17, 15, 1]);
  expect(permits.tryAcquire(1, 750)).toBe(750);
  expect(permits.tryAcquire(2, 1)).toBe(1);
});

test('an account has permits for a lane only while it could have those of an attempt of the longest event', () => {
  const permits = new RequestsInFlight(384).permits.queued;
  permits.tryAcquire(1, 752);
  expect(permits.free(1)).toBe(0);
  permits.release(1, 1);
  expect(permits.free(1)).toBe(17);
  expect(permits.free(2)).toBe(393);
});

test('an attempt needs one permit, and one more for each complete 8,192 code units of the messages of its event', () => {
  const data = { runStatusMessage: 'x'.repeat(8_000), runReason: 'x'.repeat(191) };
  const longest = '\u{1f600}'.repeat(65_536);
  const counts = [
    data,
    { ...data, runReason: 'x'.repeat(192) },
    { runStatusMessage: longest, runReason: longest },
  ];
  expect(counts.map((one) => permitsOf({ data: one as never }))).toEqual([1, 2, 33]);
});

test('a first attempt may wait for a slot while its subscription has at most 32 first attempts, a quarter of the slots for events', () => {
  const requests = new RequestsInFlight(384);
  for (let attempt = 0; attempt < 32; attempt += 1) requests.enter('a');
  expect(requests.canWait('a')).toBe(true);
  requests.enter('a');
  expect([requests.canWait('a'), requests.canWait('b')]).toEqual([false, true]);
  requests.leave('a');
  expect(requests.canWait('a')).toBe(true);
});

test('each released slot wakes one waiting first attempt, in order, and the others wait until their timeout', async () => {
  const requests = new RequestsInFlight(384);
  requests.enter('a');
  const wokenOrder: number[] = [];
  for (const [index, withinMs] of [3_600_000, 3_600_000, 5].entries())
    void requests.waitForRelease('a', withinMs).then(() => wokenOrder.push(index));
  requests.noteRelease('a');
  await macrotask();
  expect(wokenOrder[0]).toBe(0);
  while (wokenOrder.length < 2) await macrotask();
  expect(wokenOrder).toEqual([0, 2]);
  requests.noteRelease('a');
  requests.noteRelease('b');
  await macrotask();
  expect(wokenOrder).toEqual([0, 2, 1]);
  expect(requests.waiterCount('a')).toBe(0);
});
