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

/**
 * An id that no job has, because formats identify alerts by the job: a sample with the id of a real one would open or resolve
 * that job's alert. It fits into the integers of all consumers.
 */
const SAMPLE_JOB_ID = String(2 ** 31 - 1);

/**
 * Creates the sample that is sent to test an endpoint and shown in the console: an event that has just occurred. Its
 * job and run are made up.
 */
export function sampleEvent(
  eventType: EventType,
  { accountId, eventId, now }: { accountId: number; eventId: string; now: Date },
): JobRunEvent {
  const timestamp = nanosecondTimestamp(now.toISOString()) as string;
  const { statuses } = EVENT_TYPE_TABLE[eventType];
  const startedMs = now.getTime() - (statuses[0] === 'Running' ? 0 : RUN_SECONDS * 1000);
  const run = {
    jobId: SAMPLE_JOB_ID,
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
