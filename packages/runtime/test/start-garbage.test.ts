import { expect, test } from '@jest/globals';
import { letGoOfStart } from '../src/start-garbage.ts';

const collected = (work: () => void) =>
  new Promise<boolean>((resolve) => {
    let isCollected = false;
    letGoOfStart({ afterMs: 300, gc: () => (isCollected = true) });
    work();
    // Timers of one time go in their order.
    setTimeout(() => resolve(isCollected), 300);
  });

test('a service that is at rest lets go of what its start took, and one at work does not', async () => {
  // On a busy machine a turn may take its time, in which nothing is done: such a process counts as one at work, once in a while.
  let tries = 1;
  while (!(await collected(() => {})) && tries < 20) tries += 1;
  expect(tries).toBeLessThan(20);
  const atWork = () => {
    for (const endMs = performance.now() + 150; performance.now() < endMs; );
  };
  expect(await collected(atWork)).toBe(false);
});
