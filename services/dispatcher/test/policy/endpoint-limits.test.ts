import { expect, test } from '@jest/globals';
import { EndpointLimits, type Slot } from '../../src/policy/endpoint-limits.ts';

function setUp(concurrency = 256) {
  const clock = { nowMs: 0 };
  const limits = new EndpointLimits({ concurrency, nowMs: () => clock.nowMs });
  return { clock, limits };
}

function acquireAll(limits: EndpointLimits, endpoint: string): Slot[] {
  const slots: Slot[] = [];
  for (let slot = limits.acquireInPlace(endpoint); slot; slot = limits.acquireInPlace(endpoint))
    slots.push(slot);
  return slots;
}
function acquireAllQueued(limits: EndpointLimits, endpoint: string): Slot[] {
  const slots: Slot[] = [];
  for (let slot = limits.acquireQueued(endpoint); 'state' in slot; slot = limits.acquireQueued(endpoint))
    slots.push(slot);
  return slots;
}
function release(limits: EndpointLimits, slot: Slot | null | undefined, succeeded: boolean): void {
  if (!slot) throw new Error('no slot to release');
  limits.release(slot, succeeded);
}
const succeed = (limits: EndpointLimits, endpoint: string) =>
  release(limits, limits.acquireInPlace(endpoint), true);
function fail(limits: EndpointLimits, endpoint: string, times: number): void {
  for (let time = 0; time < times; time += 1) {
    const slot = limits.acquireQueued(endpoint);
    if ('state' in slot) limits.release(slot, false);
  }
}

test('an endpoint that answers has a generous limit of its own', () => {
  const { limits } = setUp();
  succeed(limits, 'a');
  const slots = acquireAll(limits, 'a');
  expect(slots).toHaveLength(128);
  expect(limits.acquireInPlace('b')).not.toBeNull();
  release(limits, slots[0], true);
  expect(acquireAll(limits, 'a')).toHaveLength(1);
});

test('an endpoint that has not answered yet gets a few slots until it does', () => {
  const { limits } = setUp();
  const slots = acquireAll(limits, 'new');
  expect(slots).toHaveLength(16);
  release(limits, slots[0], true);
  expect(acquireAll(limits, 'new')).toHaveLength(128 - 15);
});

test('failures in a row lower the limit to four, then to none in place, and a success restores it', () => {
  const { limits } = setUp();
  succeed(limits, 'a');
  fail(limits, 'a', 3);
  const few = acquireAll(limits, 'a');
  expect(few).toHaveLength(4);
  for (const slot of few) release(limits, slot, false);
  fail(limits, 'a', 3);
  expect(acquireAll(limits, 'a')).toHaveLength(0);
  const probes = acquireAllQueued(limits, 'a');
  // They fail at once, so they hold nobody up.
  expect(probes).toHaveLength(16);
  for (const slot of probes) release(limits, slot, true);
  expect(acquireAll(limits, 'a')).toHaveLength(128);
});

test('an endpoint that stops answering while others answer loses its slots before its requests have timed out', () => {
  const { clock, limits } = setUp();
  succeed(limits, 'a');
  const held = Array.from({ length: 20 }, () => limits.acquireInPlace('a'));
  clock.nowMs = 600;
  succeed(limits, 'b');
  expect(limits.acquireInPlace('a')).toBeNull();
  release(limits, held[0], true);
  expect(limits.acquireInPlace('a')).not.toBeNull();
});

test('while nobody answers, because this process hangs or the network does, nobody loses its slots', () => {
  const { clock, limits } = setUp();
  succeed(limits, 'a');
  limits.acquireInPlace('a');
  clock.nowMs = 5_000;
  expect(acquireAll(limits, 'a')).toHaveLength(127);
});

test('a far-away endpoint is not silent while it takes its usual time', () => {
  const { clock, limits } = setUp();
  const first = limits.acquireInPlace('far');
  clock.nowMs = 1_000;
  release(limits, first, true);
  limits.acquireInPlace('far');
  clock.nowMs = 2_900;
  succeed(limits, 'near');
  expect(limits.acquireInPlace('far')).not.toBeNull();
});

test('a thousand endpoints that never answer hold no more than a quarter of the slots, and half of the queued ones', () => {
  const { limits } = setUp(256);
  succeed(limits, 'healthy');
  const endpoints = Array.from({ length: 1_000 }, (_, index) => `dead-${index}`);
  expect(endpoints.flatMap((endpoint) => acquireAll(limits, endpoint))).toHaveLength(64);
  expect(endpoints.flatMap((endpoint) => acquireAllQueued(limits, endpoint))).toHaveLength(128);
  expect(acquireAll(limits, 'healthy')).toHaveLength(128);
});

test('what is postponed comes again as slots become free, never later than after half a minute', () => {
  const { clock, limits } = setUp();
  for (let timeout = 0; timeout < 8; timeout += 1) {
    const probes = acquireAllQueued(limits, 'dead');
    clock.nowMs += 10_000;
    for (const slot of probes) release(limits, slot, false);
  }
  acquireAllQueued(limits, 'dead');
  const waits = Array.from({ length: 100 }, () => {
    const slot = limits.acquireQueued('dead');
    return 'state' in slot ? 0 : slot.postponeMs;
  });
  // Four slots that are held for ten seconds each.
  expect((waits[2] ?? 0) - (waits[1] ?? 0)).toBeCloseTo(2_500, -2);
  expect(Math.max(...waits)).toBe(30_000);
});

test('what is postponed because an endpoint is at its limit comes again soon when it answers fast', () => {
  const { clock, limits } = setUp();
  for (let request = 0; request < 10; request += 1) {
    const slot = limits.acquireInPlace('a');
    clock.nowMs += 5;
    release(limits, slot, true);
  }
  acquireAllQueued(limits, 'a');
  const waits = Array.from({ length: 100 }, () => {
    const slot = limits.acquireQueued('a');
    return 'state' in slot ? 0 : slot.postponeMs;
  });
  expect(Math.max(...waits)).toBeLessThan(200);
});

test('an endpoint with attempts in flight is remembered, however many others come', () => {
  const { limits } = setUp(1_000);
  expect(acquireAll(limits, 'busy')).toHaveLength(16);
  for (let other = 0; other < 20_001; other += 1) succeed(limits, `other-${other}`);
  expect(limits.acquireInPlace('busy')).toBeNull();
});

test('what is known of the endpoint that was used longest ago is forgotten when there are too many', () => {
  const { limits } = setUp();
  fail(limits, 'failing', 10);
  expect(limits.acquireInPlace('failing')).toBeNull();
  for (let other = 0; other < 20_001; other += 1) succeed(limits, `other-${other}`);
  expect(limits.acquireInPlace('failing')).not.toBeNull();
});
