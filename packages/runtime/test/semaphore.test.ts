import { expect, test } from '@jest/globals';
import { Semaphore } from '../src/semaphore.ts';

/** Records the names of those that acquired the semaphore, in order. */
function recordEntries(semaphore: Semaphore) {
  const entered: string[] = [];
  return {
    entered,
    async enter(name: string, weight?: number, isLowPriority?: boolean) {
      await semaphore.acquire(weight, isLowPriority);
      entered.push(name);
    },
  };
}

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

test('a semaphore admits as many callers as it has slots, and the waiters in their order as slots are released', async () => {
  const semaphore = new Semaphore(2);
  const { entered, enter } = recordEntries(semaphore);
  for (const name of ['a', 'b', 'c', 'd']) void enter(name);
  await nextIteration();
  expect(entered).toEqual(['a', 'b']);
  semaphore.release();
  await nextIteration();
  expect(entered).toEqual(['a', 'b', 'c']);
  expect(semaphore.acquire()).toBeInstanceOf(Promise);
});

test('a caller that takes many slots enters while any slot is free, and delays the others until as many are released', async () => {
  const semaphore = new Semaphore(10);
  const { entered, enter } = recordEntries(semaphore);
  void enter('nine', 9);
  void enter('fifty', 50);
  void enter('one');
  await nextIteration();
  expect(entered).toEqual(['nine', 'fifty']);
  semaphore.release(9);
  await nextIteration();
  expect(entered).toEqual(['nine', 'fifty']);
  for (let left = 50; left > 9; left -= 1) semaphore.release();
  await nextIteration();
  expect(entered).toEqual(['nine', 'fifty', 'one']);
});

test('a caller with low priority enters only when there are no other waiters, however long it has waited', async () => {
  const semaphore = new Semaphore(1);
  const { entered, enter } = recordEntries(semaphore);
  void enter('first');
  void enter('a burst', 1, true);
  void enter('the rest of it', 1, true);
  void enter('another');
  for (let leaves = 0; leaves < 2; leaves += 1) {
    semaphore.release();
    await nextIteration();
  }
  expect(entered).toEqual(['first', 'another', 'a burst']);
  void enter('a late one');
  semaphore.release();
  await nextIteration();
  expect(entered).toEqual(['first', 'another', 'a burst', 'a late one']);
});

test('a semaphore removes served waiters from memory, however many there are', async () => {
  const semaphore = new Semaphore(1);
  const { entered, enter } = recordEntries(semaphore);
  const all = Array.from({ length: 5_000 }, (_, index) =>
    enter(String(index)).then(() => semaphore.release()),
  );
  await Promise.all(all);
  expect(entered).toEqual(Array.from({ length: 5_000 }, (_, index) => String(index)));
  expect(semaphore.acquire()).toBeUndefined();
});
