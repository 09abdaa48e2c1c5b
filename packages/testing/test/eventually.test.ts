import { expect, test } from '@jest/globals';
import { eventually } from '../src/index.ts';

test('eventually() returns the value of the first try that does not throw', async () => {
  let tries = 0;
  const value = await eventually(
    async () => {
      tries += 1;
      if (tries < 3) throw new Error('not yet');
      return 'there';
    },
    { intervalMs: 1 },
  );
  expect([value, tries]).toEqual(['there', 3]);
});

test('eventually() throws the last error of the assertion after the timeout', async () => {
  let tries = 0;
  const failure = await eventually(
    () => {
      tries += 1;
      throw new Error(`try ${tries}`);
    },
    { timeoutMs: 60, intervalMs: 10 },
  ).catch((error: unknown) => error);
  expect(failure).toEqual(new Error(`try ${tries}`));
});
