/** Queue of triggered runs, separate from the events: a job notifies runners of a run that waits, and has its ids only. */
export const JOB_RUN_REQUESTS = 'job-run-requests';

/**
 * Data of a job of {@link JOB_RUN_REQUESTS}. The runner claims the run over REST: the record decides which runner gets it, so
 * a job whose run was claimed or cancelled has no effect.
 */
export interface RunRequest {
  accountId: number;
  runId: number;
  jobId: number;
  /** Number of the claim that the job is for, from 1: a run whose lease expired is queued again. */
  attempt: number;
}

/** Returns the queue job's id, one per run and attempt; adding it again while it is queued has no effect. */
export function runRequestJobId({ accountId, runId, attempt }: Omit<RunRequest, 'jobId'>): string {
  return `${accountId}-${runId}-${attempt}`;
}
