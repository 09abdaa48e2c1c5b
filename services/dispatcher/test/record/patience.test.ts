import { expect, test } from '@jest/globals';
import { createPatience, StoppingError } from '../../src/record/open-record.ts';

class Away extends Error {}
const isUnavailable = (error: unknown) => error instanceof Away;

test('waits while the database is away, says so once, and goes on when it is back', async () => {
  const waits: unknown[] = [];
  const patience = createPatience({
    isUnavailable,
    signal: new AbortController().signal,
    onWait: (e) => waits.push(e),
  });
  let tries = 0;
  const work = async () => {
    tries += 1;
    if (tries < 3) throw new Away();
    return 'done';
  };
  expect(await patience(work)).toBe('done');
  expect(tries).toBe(3);
  expect(waits).toHaveLength(1);
});

test('passes every other error on at once', async () => {
  const patience = createPatience({
    isUnavailable,
    signal: new AbortController().signal,
    onWait: () => undefined,
  });
  await expect(patience(() => Promise.reject(new RangeError('x')))).rejects.toThrow(RangeError);
});

test('a stop ends the wait, and work that needs none still runs', async () => {
  const stopping = new AbortController();
  const patience = createPatience({ isUnavailable, signal: stopping.signal, onWait: () => stopping.abort() });
  await expect(patience(() => Promise.reject(new Away()))).rejects.toThrow(StoppingError);
  expect(await patience(async () => 'done')).toBe('done');
});
