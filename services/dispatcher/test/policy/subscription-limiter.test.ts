import { expect, test } from '@jest/globals';
import type { Lane } from '../../src/policy/origins.ts';
import { RequestsInFlight } from '../../src/policy/requests-in-flight.ts';
import { type Slot, SubscriptionLimiter } from '../../src/policy/subscription-limiter.ts';

function setUp(concurrency = 256) {
  const clock = { nowMs: 0 };
  const nowMs = () => clock.nowMs;
  const requests = new RequestsInFlight(concurrency, nowMs);
  const limits = new SubscriptionLimiter({ requests, nowMs });
  return { clock, limits };
}

const lane = (subscriptionId: string, accountId = 1, origin = 'https://a.example'): Lane => {
  return { subscriptionId, accountId, origin, blockedMs: 0 };
};

function acquireAll(limits: SubscriptionLimiter, at: Lane): Slot[] {
  const slots: Slot[] = [];
  for (let slot = limits.acquireFirst(at); slot; slot = limits.acquireFirst(at)) slots.push(slot);
  return slots;
}
function acquireAllQueued(limits: SubscriptionLimiter, at: Lane): Slot[] {
  const slots: Slot[] = [];
  for (let slot = limits.acquireQueued(at); slot; slot = limits.acquireQueued(at)) slots.push(slot);
  return slots;
}
function attempt(limits: SubscriptionLimiter, at: Lane, succeeded: boolean): void {
  const slot = limits.acquireQueued(at);
  if (!slot) throw new Error('no slot');
  limits.release(slot, succeeded ? 'succeeded' : 'failed');
}
/** Makes 128 successful attempts, so that the lane has its maximum of slots. */
function open(limits: SubscriptionLimiter, at: Lane): void {
  for (let success = 0; success < 128; success += 1) attempt(limits, at, true);
}
function failUntilItFails(limits: SubscriptionLimiter, at: Lane): void {
  for (let slot = limits.acquireQueued(at); slot; slot = limits.acquireQueued(at))
    limits.release(slot, 'failed');
}

test('a lane that responds has a separate limit of 128 attempts in flight', () => {
  const { limits } = setUp();
  open(limits, lane('a'));
  const slots = acquireAll(limits, lane('a'));
  expect(slots).toHaveLength(128);
  expect(limits.acquireFirst(lane('b'))).not.toBeNull();
  limits.release(slots[0] as Slot, 'succeeded');
  expect(acquireAll(limits, lane('a'))).toHaveLength(1);
});

test('a lane without a response gets 16 slots until its first success', () => {
  const { limits } = setUp();
  const slots = acquireAll(limits, lane('new'));
  expect(slots).toHaveLength(16);
  limits.release(slots[0] as Slot, 'succeeded');
  expect(acquireAll(limits, lane('new'))).toHaveLength(128 - 15);
});

test('a lane without success in its last 20 attempts gets one probe at a time, and more slots with each success', () => {
  const { clock, limits } = setUp();
  open(limits, lane('a'));
  for (let failure = 0; failure < 19; failure += 1) attempt(limits, lane('a'), false);
  expect(limits.isSaturated(lane('a'))).toBe(false);
  attempt(limits, lane('a'), false);
  expect(limits.isSaturated(lane('a'))).toBe(true);
  expect(limits.acquireFirst(lane('a'))).toBeNull();
  expect(limits.waitMs('a')).toBe(100);
  clock.nowMs += 100;
  const [probe, ...more] = acquireAllQueued(limits, lane('a'));
  expect(more).toHaveLength(0);
  limits.release(probe as Slot, 'succeeded');
  const some = acquireAllQueued(limits, lane('a'));
  expect(some).toHaveLength(4);
  for (const slot of some) limits.release(slot, 'succeeded');
  expect(acquireAllQueued(limits, lane('a'))).toHaveLength(16);
});

test('the limit of a lane is proportional to its success rate over the last 20 attempts', () => {
  const { limits } = setUp();
  for (let pair = 0; pair < 20; pair += 1) {
    attempt(limits, lane('a'), true);
    attempt(limits, lane('a'), false);
  }
  const slots = acquireAll(limits, lane('a'));
  expect(slots).toHaveLength(64);
  for (const slot of slots) limits.release(slot, 'succeeded');
  expect(acquireAll(limits, lane('a'))).toHaveLength(128);
});

test('an endpoint that fails half of its requests at random gets nearly all first requests at once', () => {
  const { clock, limits } = setUp();
  const at = lane('a');
  let random = 1;
  const succeeds = () => {
    random = (random * 16_807) % 2_147_483_647;
    return random % 2 === 0;
  };
  const waits: number[] = [];
  const deferredAtMs: number[] = [];
  const ends: { atMs: number; slot: Slot }[] = [];
  let jobStartsAtMs: number | null = null;
  const begin = (slot: Slot, sinceMs: number) => {
    waits.push(clock.nowMs - sinceMs);
    ends.push({ slot, atMs: clock.nowMs + 20 });
  };
  for (; clock.nowMs < 60_000; clock.nowMs += 10) {
    while (ends[0] && ends[0].atMs <= clock.nowMs)
      limits.release((ends.shift() as (typeof ends)[0]).slot, succeeds() ? 'succeeded' : 'failed');
    if (jobStartsAtMs !== null && jobStartsAtMs <= clock.nowMs) {
      limits.beginDraining('a');
      for (let freeSlots = limits.freeSlots('a'); freeSlots > 0 && deferredAtMs.length > 0; freeSlots -= 1) {
        const slot = limits.acquireQueued(at);
        if (slot) begin(slot, deferredAtMs.shift() as number);
      }
      const nextDelayMs: number | null = deferredAtMs.length === 0 ? null : limits.waitMs('a');
      limits.endDraining('a', nextDelayMs);
      jobStartsAtMs = nextDelayMs === null ? null : clock.nowMs + nextDelayMs;
    }
    if (clock.nowMs % 50 > 0) continue;
    const slot = limits.acquireFirst(at);
    if (slot) begin(slot, clock.nowMs);
    else {
      deferredAtMs.push(clock.nowMs);
      const delayMs = limits.laneJobDelayMs('a');
      if (delayMs !== null) jobStartsAtMs = clock.nowMs + delayMs;
    }
  }
  expect(waits.length + deferredAtMs.length).toBe(1_200);
  expect(deferredAtMs.length).toBeLessThan(10);
  waits.sort((a, b) => a - b);
  expect(waits[Math.floor(waits.length * 0.95)]).toBeLessThan(2_000);
});

test('a blocked lane gets no slot until the block ends, except for a redelivery or its probe', () => {
  const { clock, limits } = setUp();
  open(limits, lane('a'));
  const blocked = { ...lane('a'), blockedMs: 3_600_000 };
  expect([limits.isSaturated(blocked), limits.acquireFirst(blocked), limits.acquireQueued(blocked)]).toEqual([
    true,
    null,
    null,
  ]);
  const slot = limits.acquireQueued(blocked, true) as Slot;
  limits.release(slot, 'failed');
  expect([limits.freeSlots('a'), limits.waitMs('a')]).toEqual([0, 5_000]);
  clock.nowMs += 3_599_000;
  expect(limits.waitMs('a')).toBe(1_000);
  clock.nowMs += 1_000;
  expect(limits.freeSlots('a')).toBe(61);
  limits.update({ ...lane('a'), blockedMs: 1_000 });
  expect(limits.freeSlots('a')).toBe(0);
  // A first attempt that was planned before the block does not end it.
  expect(limits.expectedWaitMs(lane('a'), 0)).toBe(Number.POSITIVE_INFINITY);
  expect(limits.acquireFirst(lane('a'))).toBeNull();
  limits.update(lane('a'));
  expect(limits.isSaturated(lane('a'))).toBe(false);
});

test('the job of a lane does not wait for the server of its former client_url', () => {
  const { limits } = setUp();
  open(limits, lane('a'));
  for (let failure = 0; failure < 3; failure += 1)
    limits.release(limits.acquireQueued(lane('b')) as Slot, 'not_connected');
  expect(limits.freeSlots('a')).toBe(0);
  limits.update(lane('a', 1, 'https://new.example'));
  expect(limits.freeSlots('a')).toBe(64);
});

test('the wait between probes grows with each failed probe, up to five seconds', () => {
  const { clock, limits } = setUp();
  failUntilItFails(limits, lane('a'));
  const waits = Array.from({ length: 8 }, () => {
    const waitMs = limits.waitMs('a');
    clock.nowMs += waitMs;
    attempt(limits, lane('a'), false);
    return waitMs;
  });
  expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  clock.nowMs += 5_000;
  attempt(limits, lane('a'), true);
  expect(acquireAllQueued(limits, lane('a'))).toHaveLength(6);
});

test('all failing lanes together get a hundred probes a second', () => {
  const { clock, limits } = setUp();
  const lanes = Array.from({ length: 500 }, (_, index) => lane(`dead-${index}`));
  for (const one of lanes) failUntilItFails(limits, one);
  clock.nowMs = 1_000;
  const probesOfASecond = () => {
    let probes = 0;
    for (const endMs = clock.nowMs + 1_000; clock.nowMs < endMs; clock.nowMs += 1) {
      for (const one of lanes) {
        const slot = limits.acquireQueued(one);
        if (!slot) continue;
        limits.release(slot, 'failed');
        probes += 1;
      }
    }
    return probes;
  };
  // Ten unused probes are made at once.
  expect(probesOfASecond()).toBe(110);
  expect(probesOfASecond()).toBe(100);
});

test('the jobs of failing lanes run one after another, within half a minute', () => {
  const { clock, limits } = setUp();
  const lanes = Array.from({ length: 5_000 }, (_, index) => lane(`dead-${index}`));
  for (const one of lanes) failUntilItFails(limits, one);
  clock.nowMs = 60_000;
  const waits = lanes.map(({ subscriptionId }) => limits.waitMs(subscriptionId));
  expect(waits[999]).toBe(10_000);
  expect(waits[2_000]).toBe(20_010);
  expect(Math.max(...waits)).toBe(30_000);
});

test('a lane whose job is delayed is not woken, and first attempts leave slots to the job', () => {
  const { clock, limits } = setUp();
  open(limits, lane('a'));
  limits.beginDraining('a');
  expect(limits.laneJobDelayMs('a')).toBeNull();
  limits.endDraining('a', 500);
  expect([limits.laneJobDelayMs('a'), limits.isSaturated(lane('a'))]).toEqual([null, false]);
  expect(acquireAll(limits, lane('a'))).toHaveLength(96);
  expect(limits.acquireQueued(lane('a'))).not.toBeNull();
  clock.nowMs += 500;
  expect(limits.laneJobDelayMs('a')).toBe(0);
  expect(acquireAll(limits, lane('a'))).toHaveLength(128 - 97);
});

test('a failing lane is woken once, at the time of its next probe', () => {
  const { clock, limits } = setUp();
  failUntilItFails(limits, lane('a'));
  const delayMs = limits.laneJobDelayMs('a') ?? 0;
  expect(delayMs).toBeGreaterThan(0);
  expect(limits.laneJobDelayMs('a')).toBeNull();
  clock.nowMs += delayMs;
  expect([limits.laneJobDelayMs('a'), limits.freeSlots('a')]).toEqual([0, 1]);
});

test('a server that accepts no connection is probed by one lane after another until it accepts one', () => {
  const { clock, limits } = setUp();
  const connect = (subscriptionId: string) => {
    const slot = limits.acquireQueued(lane(subscriptionId));
    if (slot) limits.release(slot, 'not_connected');
  };
  for (const subscriptionId of ['a', 'b', 'c']) connect(subscriptionId);
  clock.nowMs += 100;
  expect(
    acquireAll(limits, lane('new', 2)).map((slot) => limits.release(slot, 'not_connected')),
  ).toHaveLength(1);
  expect(limits.isSaturated(lane('new', 2))).toBe(true);
  expect(acquireAll(limits, lane('elsewhere', 2, 'https://b.example'))).toHaveLength(16);
  expect(limits.freeSlots('a')).toBe(0);
  clock.nowMs += 200;
  limits.release(limits.acquireQueued(lane('a')) as Slot, 'failed');
  expect(limits.freeSlots('new')).toBe(16);
});

test('one of a thousand lanes on a server that accepts no connection is probed, and the jobs of the others run within half a minute', () => {
  const { clock, limits } = setUp();
  const lanes = Array.from({ length: 1_000 }, (_, index) => lane(`dead-${index}`));
  clock.nowMs = 60_000;
  const inFlight = lanes.slice(0, 20).map((one) => limits.acquireQueued(one) as Slot);
  for (const slot of inFlight) limits.release(slot, 'not_connected');
  for (const one of lanes) limits.isSaturated(one);
  clock.nowMs += 100;
  expect(lanes.flatMap((one) => limits.acquireQueued(one) ?? [])).toHaveLength(1);
  const waits = lanes.map(({ subscriptionId }) => limits.waitMs(subscriptionId));
  expect((waits[999] as number) - (waits[0] as number)).toBeGreaterThan(20_000);
  expect(Math.max(...waits)).toBe(30_000);
});

test('while the job of a lane is active, first attempts leave slots to it, and get none if the lane is new', () => {
  const { limits } = setUp();
  open(limits, lane('a'));
  for (const subscriptionId of ['a', 'new']) limits.beginDraining(subscriptionId);
  expect(acquireAll(limits, lane('a'))).toHaveLength(96);
  expect(acquireAllQueued(limits, lane('a'))).toHaveLength(32);
  expect(limits.isSaturated(lane('new', 1, 'https://new.example'))).toBe(true);
});

test('the expected wait for a slot grows with the waiting attempts of a responding lane, and is infinite for other lanes', () => {
  const { clock, limits } = setUp();
  expect(limits.expectedWaitMs(lane('new'), 0)).toBe(Number.POSITIVE_INFINITY);
  const slot = limits.acquireFirst(lane('a'));
  clock.nowMs += 128;
  limits.release(slot as Slot, 'succeeded');
  const [first, third] = [0, 2].map((ahead) => limits.expectedWaitMs(lane('a'), ahead));
  expect(first).toBeGreaterThan(0);
  expect(third).toBe(3 * (first as number));
  failUntilItFails(limits, lane('a'));
  expect(limits.expectedWaitMs(lane('a'), 0)).toBe(Number.POSITIVE_INFINITY);
});

test('a lane that stops responding while others respond gets no further slots before its requests time out', () => {
  const { clock, limits } = setUp();
  open(limits, lane('a'));
  const slotsInFlight = Array.from({ length: 20 }, () => limits.acquireFirst(lane('a')));
  clock.nowMs = 600;
  attempt(limits, lane('b'), true);
  expect(limits.acquireFirst(lane('a'))).toBeNull();
  limits.release(slotsInFlight[0] as Slot, 'succeeded');
  expect(limits.acquireFirst(lane('a'))).not.toBeNull();
});

test('no lane loses slots while no endpoint responds, because then this process or the network hangs', () => {
  const { clock, limits } = setUp();
  open(limits, lane('a'));
  limits.acquireFirst(lane('a'));
  clock.nowMs = 5_000;
  expect(acquireAll(limits, lane('a'))).toHaveLength(127);
});

test('an endpoint does not count as silent before three times its usual response time', () => {
  const { clock, limits } = setUp();
  const first = limits.acquireFirst(lane('far'));
  clock.nowMs = 1_000;
  limits.release(first as Slot, 'succeeded');
  limits.acquireFirst(lane('far'));
  clock.nowMs = 2_900;
  attempt(limits, lane('near'), true);
  expect(limits.acquireFirst(lane('far'))).not.toBeNull();
});

test('a thousand lanes that never respond occupy at most a quarter of the concurrency for first attempts, and half of it for queued ones', () => {
  const { clock, limits } = setUp(256);
  const healthy = lane('healthy', 1, 'https://healthy.example');
  open(limits, healthy);
  const lanes = Array.from({ length: 1_000 }, (_, index) =>
    lane(`dead-${index}`, index, `https://${index}.example`),
  );
  const slotsInFlight = { first: 0, queued: 0 };
  const countInFlightAfter = (ms: number) => {
    clock.nowMs = 10_000 + ms;
    slotsInFlight.first += lanes.flatMap((one) => acquireAll(limits, one)).length;
    slotsInFlight.queued += lanes.flatMap((one) => acquireAllQueued(limits, one)).length;
    return { ...slotsInFlight };
  };
  // The slots are not given at once, because each costs a connection.
  expect(countInFlightAfter(0)).toEqual({ first: 32, queued: 32 });
  expect(countInFlightAfter(500)).toEqual({ first: 42, queued: 42 });
  expect(countInFlightAfter(5_000)).toEqual({ first: 64, queued: 128 });
  expect(acquireAll(limits, healthy)).toHaveLength(128);
});

test('each new lane that responds admits one more new lane; after a second without new lanes the limit is 32 again', () => {
  const { clock, limits } = setUp(1_000);
  const lanes = Array.from({ length: 500 }, (_, index) =>
    lane(`new-${index}`, index, `https://${index}.example`),
  );
  const first = lanes.flatMap((one) => limits.acquireQueued(one) ?? []);
  expect(first).toHaveLength(32);
  for (const slot of first) limits.release(slot, 'succeeded');
  const next = lanes.slice(32).flatMap((one) => limits.acquireQueued(one) ?? []);
  expect(next).toHaveLength(64);
  for (const slot of next) limits.release(slot, 'succeeded');
  clock.nowMs = 1_001;
  expect(lanes.slice(96).flatMap((one) => limits.acquireQueued(one) ?? [])).toHaveLength(32);
});

test('the jobs of lanes that find no slow-start slot run one after another, within half a minute', () => {
  const { clock, limits } = setUp(8);
  const lanes = Array.from({ length: 100 }, (_, index) => lane(`dead-${index}`));
  const slotsInFlight = lanes.slice(0, 4).flatMap((one) => limits.acquireQueued(one) ?? []);
  clock.nowMs = 10_000;
  for (const slot of slotsInFlight) limits.release(slot, 'failed');
  for (const one of lanes.slice(0, 4)) limits.acquireQueued(one);
  const waits = lanes.slice(4).map(({ subscriptionId }) => limits.waitMs(subscriptionId));
  expect(waits[3] as number).toBeGreaterThan(waits[2] as number);
  expect(Math.max(...waits)).toBeLessThanOrEqual(30_000);
});

test('lanes check for a slot less often the longer unresponsive lanes occupy theirs', () => {
  const { clock, limits } = setUp(8);
  for (const name of ['dead-1', 'dead-2', 'dead-3', 'dead-4']) limits.acquireQueued(lane(name));
  expect(limits.waitMs('new-1')).toBe(100);
  clock.nowMs = 10_000;
  const waits = ['new-2', 'new-3', 'new-4'].map((name) => limits.waitMs(name));
  expect(waits).toEqual([2_500, 5_000, 7_500]);
});

test('one account gets at most half of the capacity of a server, so that a second account still gets slots', () => {
  const { clock, limits } = setUp(10_000);
  limits.acquireQueued(lane('first', 2, 'https://first.example'));
  clock.nowMs = 3_600_000;
  const slotsInFlight = Array.from({ length: 200 }, (_, index) =>
    acquireAllQueued(limits, lane(`a-${index}`)),
  ).flat();
  expect(slotsInFlight).toHaveLength(2_048);
  expect(limits.acquireFirst(lane('a-new'))).toBeNull();
  expect(acquireAll(limits, lane('b', 2))).toHaveLength(16);
  expect(limits.acquireFirst(lane('a-new', 1, 'https://other.example'))).not.toBeNull();
});

test('a new lane on a responding server needs no slow start', () => {
  const { limits } = setUp(8);
  attempt(limits, lane('known'), true);
  const lanes = Array.from({ length: 100 }, (_, index) => lane(`new-${index}`));
  expect(lanes.flatMap((one) => limits.acquireFirst(one) ?? [])).toHaveLength(100);
  const elsewhere = lanes.map((one) => ({
    ...one,
    subscriptionId: `${one.subscriptionId}-b`,
    origin: 'https://b.example',
  }));
  expect(elsewhere.flatMap((one) => limits.acquireFirst(one) ?? [])).toHaveLength(2);
});

test('a lane keeps all its slots while another lane on the same server hangs', () => {
  const { clock, limits } = setUp();
  open(limits, lane('well', 2));
  acquireAll(limits, lane('hangs', 1));
  clock.nowMs = 5_000;
  attempt(limits, lane('well', 2), true);
  expect(limits.isSaturated(lane('hangs', 1))).toBe(true);
  expect(acquireAll(limits, lane('well', 2))).toHaveLength(128);
});

test('the state of a lane with attempts in flight is retained, however many other lanes are used', () => {
  const { limits } = setUp(1_000);
  expect(acquireAll(limits, lane('busy'))).toHaveLength(16);
  for (let other = 0; other < 50_001; other += 1) attempt(limits, lane(`other-${other}`), true);
  expect(limits.acquireFirst(lane('busy'))).toBeNull();
});

test('the state of the least recently used lane is evicted when there are more than 50,000', () => {
  const { limits } = setUp();
  failUntilItFails(limits, lane('failing'));
  expect(limits.acquireFirst(lane('failing'))).toBeNull();
  for (let other = 0; other < 50_001; other += 1) attempt(limits, lane(`other-${other}`), true);
  expect(limits.acquireFirst(lane('failing'))).not.toBeNull();
});
