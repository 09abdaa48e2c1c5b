import {
  createEventId,
  type PublishedEvent,
  RUN_STATUS_CODES,
  type RunStatus,
  secondsTimestamp,
} from '@runhook/publisher';
import type { Job } from './job.ts';

/** A run of a job, as its events describe it. */
export interface Run {
  id: number;
  job: Job;
  reason: string;
  startedAt: Date;
}

export function startedEvent(run: Run): PublishedEvent {
  return { ...identity(run), eventType: 'job.run.started', data: details(run, 'Running', 'None') };
}

/** Sent as soon as the run has failed, for subscribers that need early notice. */
export function erroredEvent(run: Run, erroredAt: Date, message: string): PublishedEvent {
  const data = { ...details(run, 'Errored', message), runErroredAt: secondsTimestamp(erroredAt) };
  return { ...identity(run), eventType: 'job.run.errored', data };
}

/** Sent for every run that has ended, whether it succeeded or failed, once its artifacts are available. */
export function completedEvent(run: Run, finishedAt: Date, failure: string | null): PublishedEvent {
  const status = failure === null ? 'Success' : 'Errored';
  const data = { ...details(run, status, failure ?? 'None'), runFinishedAt: secondsTimestamp(finishedAt) };
  return { ...identity(run), eventType: 'job.run.completed', data };
}

/**
 * The id is generated here instead of by the publisher, so that publishing again after an error causes no second
 * delivery.
 */
function identity(run: Run) {
  return { eventId: createEventId(), accountId: run.job.accountId, timestamp: new Date().toISOString() };
}

function details({ id, job, reason, startedAt }: Run, status: RunStatus, message: string) {
  return {
    jobId: String(job.job.id),
    jobName: job.job.name,
    runId: String(id),
    environmentId: String(job.environment.id),
    environmentName: job.environment.name,
    engineVersion: job.engineVersion,
    projectName: job.project.name,
    projectId: String(job.project.id),
    runStatus: status,
    runStatusCode: RUN_STATUS_CODES[status],
    runStatusMessage: message,
    runReason: reason,
    runStartedAt: secondsTimestamp(startedAt),
  };
}
