import { expect, test } from '@jest/globals';
import { EventsInFlight, slotsOf } from '../../src/policy/events-in-flight.ts';

const settleMicrotasks = () => new Promise((resolve) => setImmediate(resolve));

/** Adds events. Returns the release functions of those that have a slot. */
function add(events: EventsInFlight, count: number, isLowPriority = false, slots = 1): (() => void)[] {
  const releases: (() => void)[] = [];
  for (let event = 0; event < count; event += 1)
    void events.acquire(isLowPriority, slots).then((release) => releases.push(release));
  return releases;
}

test('at most 128 events are in flight, and a release admits one further event, even if it is called twice', async () => {
  const events = new EventsInFlight(384);
  const releases = add(events, 200);
  await settleMicrotasks();
  expect(releases).toHaveLength(128);
  for (let call = 0; call < 2; call += 1) releases[0]?.();
  await settleMicrotasks();
  expect(releases).toHaveLength(129);
  expect(events.waiting).toBe(71);
});

test('events beyond the burst limit leave a quarter of the slots to events of a higher priority', async () => {
  const events = new EventsInFlight(384);
  const burst = add(events, 200, true);
  await settleMicrotasks();
  expect(burst).toHaveLength(96);
  const others = add(events, 40);
  await settleMicrotasks();
  expect(others).toHaveLength(32);
  burst[0]?.();
  await settleMicrotasks();
  expect([burst.length, others.length]).toEqual([96, 33]);
});

test('an event with long messages takes several slots', async () => {
  const events = new EventsInFlight(384);
  const releases = add(
    events,
    128,
    false,
    slotsOf({ data: { runStatusMessage: 'x'.repeat(131_072) } as never }),
  );
  await settleMicrotasks();
  expect(releases).toHaveLength(26);
  releases[0]?.();
  await settleMicrotasks();
  expect(releases).toHaveLength(27);
});

test('onCapacity is called when the number of waiting events falls below 64', async () => {
  const events = new EventsInFlight(3);
  let reports = 0;
  events.onCapacity = () => void reports++;
  const releases = add(events, 3 + 64);
  await settleMicrotasks();
  expect(events.isSaturated).toBe(true);
  for (const release of releases.splice(0)) release();
  expect(events.isSaturated).toBe(false);
  expect(reports).toBe(1);
});
