import { expect, test } from '@jest/globals';
import { RequestsInFlight } from '../../src/policy/requests-in-flight.ts';

const macrotask = () => new Promise((resolve) => setImmediate(resolve));

test('events wait for permits for all their first attempts', async () => {
  const requests = new RequestsInFlight(1);
  const acquired: string[] = [];
  for (const [name, count] of [
    ['many', 5],
    ['one', 1],
  ] as const)
    void requests.acquire(count).then(() => acquired.push(name));
  await macrotask();
  expect(acquired).toEqual(['many']);
  requests.release(2);
  await macrotask();
  expect(acquired).toEqual(['many', 'one']);
});

test('a first attempt may wait while its subscription has a quarter of the events in flight', () => {
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
