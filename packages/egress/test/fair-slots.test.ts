import { expect, test } from '@jest/globals';
import { FairSlots } from '../src/fair-slots.ts';
import { nextIteration } from './listening.ts';

/** Starts work of a group that ends on request, and records its start. */
function working(slots: FairSlots) {
  const begun: string[] = [];
  const ends = new Map<string, (error?: Error) => void>();
  const run = (group: string, name: string) => {
    const done = slots.run(
      group,
      () =>
        new Promise<void>((resolve, reject) => {
          begun.push(name);
          ends.set(name, (error) => (error ? reject(error) : resolve()));
        }),
    );
    done.catch(() => {});
    return done;
  };
  const end = async (name: string, error?: Error) => {
    ends.get(name)?.(error);
    await nextIteration();
  };
  return { begun, run, end };
}

test('the limits per group and in total are enforced', async () => {
  const { begun, run, end } = working(new FairSlots({ max: 3, perGroupMax: 2 }));
  for (const name of ['a1', 'a2', 'a3', 'b1', 'c1']) void run(name.charAt(0), name);
  await nextIteration();
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  await end('b1');
  // a3 has waited longer, but its group is at its limit.
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1']);
  await end('a1');
  expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3']);
});

test('waiting groups are served round-robin', async () => {
  const { begun, run, end } = working(new FairSlots({ max: 1, perGroupMax: 1 }));
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) void run(name.charAt(0), name);
  const order: string[] = [];
  for (let n = 0; n < 7; n += 1) {
    await nextIteration();
    const name = begun.at(-1) ?? '';
    order.push(name);
    await end(name);
  }
  expect(order).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
});

test('failing work releases its slot and rejects for its caller', async () => {
  const { begun, run, end } = working(new FairSlots({ max: 1, perGroupMax: 1 }));
  const failed = run('a', 'a1');
  void run('a', 'a2');
  await nextIteration();
  await end('a1', new Error('no'));
  await expect(failed).rejects.toThrow('no');
  expect(begun).toEqual(['a1', 'a2']);
});
