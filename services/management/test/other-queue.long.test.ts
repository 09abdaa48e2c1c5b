import { test } from '@jest/globals';
import { queueBackends, useOtherQueue } from '@runhook/testing';

/** Repeats tests that `npm test` runs on one queue: their subject does not depend on the queue. */
if (queueBackends().length === 1) {
  test.skip('management passes its tests on the other queue', () => undefined);
} else {
  useOtherQueue();
  await import('./sessions/sign-in-limits.test.ts');
}
