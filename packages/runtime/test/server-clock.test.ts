import { expect, test } from '@jest/globals';
import { ServerClock } from '@runhook/runtime/server-clock';

const HOUR_MS = 3_600_000;

/**
 * Simulates a server whose clock is at 1,000,000 ms when the monotonic clock is at 0, and a host whose clock is ahead
 * of it.
 */
function createWorld(localAheadMs: number, roundTripsMs: number[] = [0]) {
  let elapsedMs = 0;
  let aheadMs = localAheadMs;
  let reads = 0;
  const serverNowMs = () => 1_000_000 + elapsedMs;
  const clock = new ServerClock({
    monotonicMs: () => elapsedMs,
    localNowMs: () => serverNowMs() + aheadMs,
    async read() {
      const roundTripMs = roundTripsMs[Math.min(reads, roundTripsMs.length - 1)] ?? 0;
      reads += 1;
      elapsedMs += roundTripMs / 2;
      const serverMs = serverNowMs();
      elapsedMs += roundTripMs / 2;
      return serverMs;
    },
  });
  return {
    clock,
    serverNowMs,
    reads: () => reads,
    pass: (ms: number) => {
      elapsedMs += ms;
    },
    stepLocalClock: (ms: number) => {
      aheadMs += ms;
    },
  };
}

test.each([HOUR_MS, -HOUR_MS, 0])(
  "the clock returns the server's time on a host that is %d ms ahead",
  async (aheadMs) => {
    const { clock, serverNowMs, pass } = createWorld(aheadMs);
    expect(clock.offsetMs).toBe(0);
    await clock.measure();
    expect(clock.nowMs()).toBe(serverNowMs());
    pass(5_000);
    expect(clock.nowMs()).toBe(serverNowMs());
    expect(clock.offsetMs).toBe(aheadMs);
  },
);

test('a step of the local clock between measurements does not affect the clock of the server', async () => {
  const { clock, serverNowMs, stepLocalClock } = createWorld(0);
  await clock.measure();
  stepLocalClock(HOUR_MS);
  expect(clock.nowMs()).toBe(serverNowMs());
  expect(clock.offsetMs).toBe(HOUR_MS);
});

test('a measurement is outdated after a time, or when the local clock was set or the host suspended', async () => {
  const { clock, pass, stepLocalClock } = createWorld(HOUR_MS);
  expect(clock.isMeasuredWithin(Number.POSITIVE_INFINITY)).toBe(false);
  await clock.measure();
  pass(60_000);
  expect(clock.isMeasuredWithin(60_000)).toBe(true);
  pass(1);
  expect(clock.isMeasuredWithin(60_000)).toBe(false);
  await clock.measure();
  stepLocalClock(2_000);
  expect(clock.isMeasuredWithin(60_000)).toBe(false);
});

test('measure() uses the shortest of several round trips, and stops after one that is short enough', async () => {
  const slow = createWorld(0, [4_000, 100, 900]);
  await slow.clock.measure();
  expect(slow.reads()).toBe(3);
  expect(Math.abs(slow.clock.nowMs() - slow.serverNowMs())).toBeLessThanOrEqual(50);
  await slow.clock.measure();
  const quick = createWorld(0, [10]);
  await quick.clock.measure();
  expect(quick.reads()).toBe(1);
});

test('the last measurement stays valid if the server does not respond', async () => {
  const { clock, serverNowMs } = createWorld(HOUR_MS);
  await clock.measure();
  const failing = new ServerClock({ read: () => Promise.reject(new Error('away')) });
  await expect(failing.measure()).rejects.toThrow('away');
  expect(failing.isMeasuredWithin(Number.POSITIVE_INFINITY)).toBe(false);
  expect(clock.nowMs()).toBe(serverNowMs());
});
