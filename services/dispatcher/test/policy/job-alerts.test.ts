import { expect, test } from '@jest/globals';
import type { JobRunEvent } from '@runhook/contract';
import { EXAMPLE_JOB, exampleEvent } from '@runhook/testing';
import { supersededReason } from '../../src/policy/job-alerts.ts';

const at = (second: number) => `2026-01-31T19:31:${String(second).padStart(2, '0')}.000000000Z`;

const trigger: JobRunEvent = { ...exampleEvent('job.run.errored', EXAMPLE_JOB, 1), timestamp: at(20) };
const last = (state: string, runId: string, second: number) => ({
  ...{ state, runId, eventId: 'wev_other', eventTimestamp: at(second) },
});

test.each([
  ['nothing was delivered', null, null],
  ['it was delivered before', { ...last('resolve', '2', 30), eventId: trigger.eventId }, null],
  ['an earlier event of the job was delivered', last('resolve', '2', 10), null],
  ['an earlier run has failed as well', last('trigger', '2', 10), null],
  ['a later run has failed as well', last('trigger', '2', 30), null],
  ['a later run has succeeded', last('resolve', '2', 30), /a later event of the job, of run 2/],
  ['another event of its run has reported the failure', last('trigger', '1', 30), /Another event of run 1/],
])('an event for a target that tracks jobs, if %s', (_case, alert, reason) => {
  const actual = supersededReason(trigger, 'trigger', alert);
  if (reason === null) expect(actual).toBeNull();
  else expect(actual).toMatch(reason);
});
