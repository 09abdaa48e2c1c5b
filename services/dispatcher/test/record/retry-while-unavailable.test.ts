import { expect, test } from '@jest/globals';
import { DatabaseUnreachableError } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import { retryWhileUnavailable, StoppingError } from '../../src/record/retry-while-unavailable.ts';

const queueAway = () => new QueueUnavailableError('away');
const databaseAway = () => new DatabaseUnreachableError('away');

test.each([
  ['queue', queueAway],
  ['database', databaseAway],
])('waits while the %s is unavailable, logs it once, and then continues', async (_name, error) => {
  const waits: unknown[] = [];
  const waiting = {
    stopping: new AbortController().signal,
    logger: { warn: (details: unknown) => waits.push(details) },
  };
  let tries = 0;
  const work = async () => {
    tries += 1;
    if (tries < 3) throw error();
    return 'done';
  };
  expect(await retryWhileUnavailable(waiting, work)).toBe('done');
  expect(tries).toBe(3);
  expect(waits).toHaveLength(1);
});

test('throws every other error at once', async () => {
  const waiting = {
    stopping: new AbortController().signal,
    logger: {
      warn: () => {
        throw new Error('waited');
      },
    },
  };
  const failing = retryWhileUnavailable(waiting, () => Promise.reject(new RangeError('x')));
  await expect(failing).rejects.toThrow(RangeError);
});

test('a stop ends the wait, and other work still runs', async () => {
  const stop = new AbortController();
  const waiting = { stopping: stop.signal, logger: { warn: () => stop.abort() } };
  const failing = retryWhileUnavailable(waiting, () => Promise.reject(queueAway()));
  await expect(failing).rejects.toThrow(StoppingError);
  expect(await retryWhileUnavailable(waiting, async () => 'done')).toBe('done');
});
