import type { Queue } from 'bullmq';

/*
 * This folder has every use of BullMQ's private API, and every method of BullMQ that is replaced:
 *
 * | file | replacement | failure without it |
 * |---|---|---|
 * | server-times.ts | times of commands in the clock of the queue's server | a wrong clock of a host runs jobs too early or too late |
 * | wait-deadlines.ts | deadlines for a worker's waits on Redis | a worker stops after a failover of a cluster |
 * | readable-job.ts | jobs whose data is not JSON can be read | one such job blocks the page of jobs, or stalls repeatedly |
 * | postgres-backend.ts | retries of the first connection, checks of the waiting one, order of the oldest jobs, end of a wait when a job is due | a worker never recovers; jobs that were delayed run late |
 * | error-backoff.ts | a pause after an error of the queue's server | a full server is queried a thousand times a second |
 * | wake-worker.ts | wakes the loop of a worker | jobs wait until another job ends |
 */

/** The version that these files were written for. Compare them with another version before you change this. */
const TESTED_BULLMQ_VERSION = '6.7.0';

/** Returns a warning if a version is not the tested one, otherwise null. @param version as `bullmq:6.7.0` */
export function untestedVersion(version: unknown): string | null {
  if (version === `bullmq:${TESTED_BULLMQ_VERSION}`) return null;
  return `Runhook replaces parts of BullMQ and was tested with BullMQ ${TESTED_BULLMQ_VERSION}, but ${version} is installed. Install ${TESTED_BULLMQ_VERSION}.`;
}

let isReported = false;

/** Reports an untested version of BullMQ as a warning of the process, once. */
export function reportUntestedVersion({ metaValues }: Pick<Queue, 'metaValues'>): void {
  if (isReported) return;
  isReported = true;
  const problem = untestedVersion(metaValues.version);
  if (problem !== null) process.emitWarning(problem, 'RunhookWarning');
}
