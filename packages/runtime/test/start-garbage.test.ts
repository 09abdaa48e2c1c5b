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
  // A busy machine may take its time between two turns, in which nothing is done either.
  expect(await collected(() => {})).toBe(true);
  const atWork = () => {
    for (const endMs = performance.now() + 150; performance.now() < endMs; );
  };
  expect(await collected(atWork)).toBe(false);
});
