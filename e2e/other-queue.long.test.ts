import { test } from '@jest/globals';
import { queueBackends, useOtherQueue } from '@runhook/testing';

/** Repeats stories that `npm test` runs on one queue. Their subject does not depend on the queue. */
const REPEATED_TESTS = ['observability/health', 'observability/stops', 'observability/traces', 'redelivery'];

if (queueBackends().length === 1) {
  test.skip('the services on another queue', () => undefined);
} else {
  useOtherQueue();
  for (const name of REPEATED_TESTS) await import(`./${name}.test.ts`);
}
