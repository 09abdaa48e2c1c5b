import { expect, test } from '@jest/globals';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import { type JobAlert, supersededReason } from '../../src/policy/job-alerts.ts';

/** The second event of a failed run, which ended at second 20. */
const trigger = exampleEvent('job.run.completed', EXAMPLE_JOB, 1);
const alert = (state: string, runId: string, second: number): JobAlert => ({
  ...{ state, runId, eventId: `wev_${runId}`, runEndedAtMs: second * 1_000 },
});

const LATER = /an event of run 2 of the job, which ended later/;
const REPEATED = /Another event of run 1/;

test.each([
  ['nothing was delivered', [], null],
  ['it was delivered before', [{ ...alert('trigger', '1', 20), eventId: trigger.eventId }], null],
  ['an earlier run has succeeded', [alert('resolve', '2', 10)], null],
  ['an earlier run has failed as well', [alert('trigger', '2', 10)], null],
  ['a later run has failed as well', [alert('trigger', '2', 30)], null],
  ['a later run has succeeded', [alert('resolve', '2', 30)], LATER],
  [
    'a later run has succeeded, and another has failed',
    [alert('trigger', '3', 40), alert('resolve', '2', 30)],
    LATER,
  ],
  ['another event of its run has reported the failure', [alert('trigger', '1', 20)], REPEATED],
  ['that was before another run succeeded', [alert('resolve', '2', 10), alert('trigger', '1', 20)], REPEATED],
])('an event for a target that tracks jobs, if %s', (_case, delivered, reason) => {
  const actual = supersededReason(trigger, 'trigger', 20_000, delivered);
  if (reason === null) expect(actual).toBeNull();
  else expect(actual).toMatch(reason);
});
