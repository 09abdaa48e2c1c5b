import { type JobRunEvent, nanosecondTimestamp, secondsTimestamp } from '@runhook/contract';

const RUN_SECONDS = 94;

/** What the test endpoint sends: a run that has just succeeded. Only the account and the ids around it are real. */
export function sampleEvent(accountId: number, eventId: string, now: Date): JobRunEvent {
  return {
    eventId,
    eventType: 'job.run.completed',
    accountId,
    timestamp: nanosecondTimestamp(now.toISOString()) as string,
    data: {
      jobId: '123',
      jobName: 'Daily job (sample)',
      runId: '12345',
      environmentId: '1234',
      environmentName: 'Production',
      engineVersion: '1.9.0',
      projectName: 'Analytics',
      projectId: '167194',
      runStatus: 'Success',
      runStatusCode: 10,
      runStatusMessage: 'None',
      runReason: 'Webhook test',
      runStartedAt: secondsTimestamp(new Date(now.getTime() - RUN_SECONDS * 1000)),
      runFinishedAt: secondsTimestamp(now),
    },
  };
}
