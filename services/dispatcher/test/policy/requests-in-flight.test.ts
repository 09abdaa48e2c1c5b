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

test('a subscription has half of the events in flight unless its slots are soon released, and a quarter may wait', () => {
  const requests = new RequestsInFlight(384);
  const enter = (count: number) => {
    for (let attempt = 0; attempt < count; attempt += 1) requests.enter('a');
  };
  enter(32);
  expect(requests.mayWait('a')).toBe(true);
  enter(1);
  expect([requests.mayWait('a'), requests.mayWait('b')]).toEqual([false, true]);
  enter(32);
  expect([requests.mayBegin('a', 51), requests.mayBegin('a', 50)]).toEqual([false, true]);
  requests.leave('a');
  expect(requests.mayBegin('a', 51)).toBe(true);
});

test('each slot that is released wakes one first attempt that waits, in order, and the others wait for a time', async () => {
  const requests = new RequestsInFlight(384);
  requests.enter('a');
  const woken: number[] = [];
  for (const [index, withinMs] of [3_600_000, 3_600_000, 5].entries())
    void requests.slotReleased('a', withinMs).then(() => woken.push(index));
  requests.noteRelease('a');
  await macrotask();
  expect(woken[0]).toBe(0);
  while (woken.length < 2) await macrotask();
  expect(woken).toEqual([0, 2]);
  requests.noteRelease('a');
  requests.noteRelease('b');
  await macrotask();
  expect(woken).toEqual([0, 2, 1]);
  expect(requests.waitingFor('a')).toBe(0);
});
