import { expect, test } from '@jest/globals';
import { takeRows } from '../src/webhooks.ts';

test.each([
  [1, ['a']],
  [2, ['a', 'b']],
  [3, ['a', 'b', 'c']],
  [4, ['a', 'b', 'c']],
])('takeRows() with a limit of %d returns at most that many rows', async (limit, expected) => {
  async function* rows() {
    yield* ['a', 'b', 'c'];
  }
  expect(await takeRows(rows(), limit)).toEqual(expected);
});
