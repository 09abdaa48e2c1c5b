import { expect, test } from '@jest/globals';
import { collectStartupGarbage } from '../src/startup-garbage.ts';

const isCollectedAfter = (work: () => void) =>
  new Promise<boolean>((resolve) => {
    let isCollected = false;
    collectStartupGarbage({ afterMs: 300, gc: () => (isCollected = true) });
    work();
    // Timers with the same delay fire in the order of their creation.
    setTimeout(() => resolve(isCollected), 300);
  });

test('an idle service collects the garbage of its start, and a busy one does not', async () => {
  // On a busy machine an idle process may occasionally be counted as busy, so the test retries.
  let tries = 1;
  while (!(await isCollectedAfter(() => {})) && tries < 20) tries += 1;
  expect(tries).toBeLessThan(20);
  const blockEventLoop = () => {
    for (const endMs = performance.now() + 150; performance.now() < endMs; );
  };
  expect(await isCollectedAfter(blockEventLoop)).toBe(false);
});
