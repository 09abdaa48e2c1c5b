import { test } from '@jest/globals';
import { queueBackends, useOtherQueue } from '@runhook/testing';

/** Tests that `npm test` runs on one queue, because their subject does not depend on it; repeated on the other one. */
const REPEATED = [
  'bad-events',
  'dispatch',
  'faults',
  'first-attempts',
  'compatibility',
  'lanes',
  'mail',
  'outages',
  'pages',
  'pending-limit',
  'quarantine',
  'record/subscription-cache',
  'resume',
  'telemetry/worker-health',
  'two-accounts',
  'maintenance/lost-queue',
  'maintenance/reconcile',
  'maintenance/recover',
  'maintenance/recover-events',
  'message-steps',
  'wrong-clock',
];

if (queueBackends().length === 1) {
  test.skip('the tests of the dispatcher are not repeated, because there is no other queue', () => undefined);
} else {
  useOtherQueue();
  for (const name of REPEATED) await import(`./${name}.test.ts`);
}
