import { expect, test } from '@jest/globals';
import { MicroBatcher } from '../src/batcher.ts';

/** Creates a `run` whose batches the test ends one by one. */
function pausableRun() {
  const batches: { items: number[]; release: () => void }[] = [];
  const run = (items: number[]) =>
    new Promise<number[]>((resolve) => {
      batches.push({ items, release: () => resolve(items.map((item) => item * 10)) });
    });
  return { batches, run };
}
const nextEventLoopIteration = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
const always = () => true;

test('items of one event loop iteration form a batch, and each gets its own result', async () => {
  const sizes: number[] = [];
  const run = async (items: number[]) => {
    sizes.push(items.length);
    return items.map((item) => item * 10);
  };
  const batcher = new MicroBatcher({ run, sizeMax: 200, slots: 2, spacingMs: 0, isItemFault: always });
  expect(await Promise.all([1, 2, 3].map((item) => batcher.add(item)))).toEqual([10, 20, 30]);
  expect(sizes).toEqual([3]);
});

test('items collect up to the maximum batch size while the slots are busy', async () => {
  const { batches, run } = pausableRun();
  const batcher = new MicroBatcher({ run, sizeMax: 3, slots: 1, spacingMs: 0, isItemFault: always });
  const results = [batcher.add(1)];
  await nextEventLoopIteration();
  results.push(...[2, 3, 4, 5].map((item) => batcher.add(item)));
  await nextEventLoopIteration();
  expect(batches.map(({ items }) => items)).toEqual([[1]]);
  for (let batch = 0; batch < 3; batch += 1) {
    batches[batch]?.release();
    await nextEventLoopIteration();
  }
  expect(batches.map(({ items }) => items)).toEqual([[1], [2, 3, 4], [5]]);
  expect(await Promise.all(results)).toEqual([10, 20, 30, 40, 50]);
});

test('waiting items of the size startSize start as one batch as soon as a slot is free', async () => {
  const { batches, run } = pausableRun();
  const options = { sizeMax: 10, startSize: 2, slots: 2, spacingMs: 3_600_000, isItemFault: always };
  const batcher = new MicroBatcher({ run, ...options });
  const results = [batcher.add(1)];
  await nextEventLoopIteration();
  results.push(batcher.add(2));
  await nextEventLoopIteration();
  expect(batches.map(({ items }) => items)).toEqual([[1]]);
  results.push(batcher.add(3));
  await nextEventLoopIteration();
  results.push(...[4, 5, 6].map((item) => batcher.add(item)));
  await nextEventLoopIteration();
  expect(batches.map(({ items }) => items)).toEqual([[1], [2, 3]]);
  batches[0]?.release();
  await nextEventLoopIteration();
  expect(batches.map(({ items }) => items)).toEqual([[1], [2, 3], [4, 5, 6]]);
  for (const { release } of batches) release();
  expect(await Promise.all(results)).toEqual([10, 20, 30, 40, 50, 60]);
});

test('items wait until their size is gather.startSize or gather.ms has passed', async () => {
  const batches: number[][] = [];
  const run = async (items: number[]) => {
    batches.push(items);
    return items;
  };
  const options = { run, sizeMax: 10, slots: 1, spacingMs: 0, isItemFault: always };
  const gatheringBatcher = new MicroBatcher({ ...options, gather: { ms: 3_600_000, startSize: 3 } });
  const added = [gatheringBatcher.add(1), gatheringBatcher.add(2)];
  await nextEventLoopIteration();
  expect(batches).toEqual([]);
  await Promise.all([...added, gatheringBatcher.add(3)]);
  expect(batches).toEqual([[1, 2, 3]]);

  const quickBatcher = new MicroBatcher({ ...options, gather: { ms: 5, startSize: 3 } });
  expect(await Promise.all([quickBatcher.add(4), quickBatcher.add(5)])).toEqual([4, 5]);
  expect(batches).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
});

test('a batch that is rejected for one item is halved, and only the caller of that item gets the error', async () => {
  let calls = 0;
  const run = async (items: number[]) => {
    calls += 1;
    if (items.includes(77)) throw new Error('77');
    return items;
  };
  const batcher = new MicroBatcher({ run, sizeMax: 128, slots: 1, spacingMs: 0, isItemFault: always });
  const items = Array.from({ length: 128 }, (_, index) => index);
  const settled = await Promise.allSettled(items.map((item) => batcher.add(item)));
  const rejected = settled.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []));
  expect(rejected).toEqual([77]);
  // 2·log2(128) + 1; one call for each item would be 129.
  expect(calls).toBe(15);
});

test('an error that is not an item fault fails the batch without another call', async () => {
  let runs = 0;
  const run = async (): Promise<number[]> => {
    runs += 1;
    throw new Error('away');
  };
  const batcher = new MicroBatcher({
    run,
    sizeMax: 10,
    slots: 1,
    spacingMs: 0,
    isItemFault: () => false,
  });
  const settled = await Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(runs).toBe(1);
});
