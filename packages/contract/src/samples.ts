// Uses no Node.js API: the console shows what the test endpoints send (`@runhook/contract/samples`).
import {
  EVENT_TYPE_TABLE,
  type EventType,
  RUN_STATUS_CODES,
  type RunDetails,
  type RunTime,
} from './event-types.ts';
import type { EventIdentity, JobRunEvent } from './events.ts';
import { createEvent } from './payload.ts';
import { nanosecondTimestamp, secondsTimestamp } from './timestamps.ts';

export { renderPayload } from './payload.ts';

/** Creates an event with the status and message of its type's sample. */
export function createSampleEvent(
  eventType: EventType,
  identity: EventIdentity,
  run: Omit<RunDetails, 'runStatus' | 'runStatusCode' | 'runStatusMessage'>,
  timeOf: (time: RunTime) => string,
): JobRunEvent {
  const { status, message } = EVENT_TYPE_TABLE[eventType].sample;
  const statusFields = {
    runStatus: status,
    runStatusCode: RUN_STATUS_CODES[status],
    runStatusMessage: message,
  };
  return createEvent(eventType, identity, { ...run, ...statusFields }, timeOf);
}

const RUN_SECONDS = 94;

/** An id that no job has: PagerDuty identifies alerts by the job, so that of a real one would open or resolve its alert. */
const JOB_ID_WITHOUT_ALERT = String(2 ** 31 - 1);

/**
 * Creates the sample that is sent to test an endpoint and shown in the console: an event that has just occurred. Its
 * job and run are made up.
 * @param identity `format` is the name of the format in which it is sent, null for the payload
 */
export function sampleEvent(
  eventType: EventType,
  {
    accountId,
    eventId,
    now,
    format = null,
  }: { accountId: number; eventId: string; now: Date; format?: string | null },
): JobRunEvent {
  const timestamp = nanosecondTimestamp(now.toISOString()) as string;
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  const startedMs = now.getTime() - (statuses[0] === 'Running' ? 0 : RUN_SECONDS * 1000);
  const run = {
    jobId: format === 'pagerduty' ? JOB_ID_WITHOUT_ALERT : '123',
    jobName: 'Daily job (sample)',
    runId: '12345',
    environmentId: '1234',
    environmentName: 'Production',
    engineVersion: '1.9.0',
    projectName: 'Analytics',
    projectId: '167194',
    runReason: 'Webhook test',
    runStartedAt: secondsTimestamp(new Date(startedMs)),
  };
  return createSampleEvent(eventType, { eventId, accountId, timestamp }, run, () => secondsTimestamp(now));
}
