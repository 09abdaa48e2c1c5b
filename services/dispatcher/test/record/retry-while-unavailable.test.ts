import { expect, test } from '@jest/globals';
import { DatabaseUnreachableError } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import { retryWhileUnavailable, StoppingError } from '../../src/record/retry-while-unavailable.ts';

const queueUnavailable = () => new QueueUnavailableError('away');
const databaseUnavailable = () => new DatabaseUnreachableError('away');

test.each([
  ['queue', queueUnavailable],
  ['database', databaseUnavailable],
])('a call waits while the %s is unavailable, logs that once, and then continues', async (_name, error) => {
  const waitsMs: unknown[] = [];
  const options = {
    stopping: new AbortController().signal,
    logger: { warn: (details: unknown) => waitsMs.push(details) },
  };
  let tries = 0;
  const work = async () => {
    tries += 1;
    if (tries < 3) throw error();
    return 'done';
  };
  expect(await retryWhileUnavailable(options, work)).toBe('done');
  expect(tries).toBe(3);
  expect(waitsMs).toHaveLength(1);
});

test('an error that does not mean an unavailable server is thrown at once', async () => {
  const options = {
    stopping: new AbortController().signal,
    logger: {
      warn: () => {
        throw new Error('waited');
      },
    },
  };
  const failing = retryWhileUnavailable(options, () => Promise.reject(new RangeError('x')));
  await expect(failing).rejects.toThrow(RangeError);
});

test('a stop ends the wait of a call with a StoppingError, and a call that succeeds at once still runs', async () => {
  const stop = new AbortController();
  const options = { stopping: stop.signal, logger: { warn: () => stop.abort() } };
  const failing = retryWhileUnavailable(options, () => Promise.reject(queueUnavailable()));
  await expect(failing).rejects.toThrow(StoppingError);
  expect(await retryWhileUnavailable(options, async () => 'done')).toBe('done');
});
