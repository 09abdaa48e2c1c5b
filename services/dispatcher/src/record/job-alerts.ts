import { type Pool, runStatement } from '@runhook/database';
import type { JobAlert } from '../policy/job-alerts.ts';

export interface JobKey {
  subscriptionId: string;
  /** Digits. */
  jobId: string;
}

const LOAD = `
  SELECT state, run_id::text AS "runId", event_id AS "eventId", event_timestamp AS "eventTimestamp"
  FROM job_alerts WHERE subscription_id = $1 AND job_id = $2`;

/** Returns the state of a job that was delivered last; null if none was. */
export async function loadJobAlert(pool: Pool, { subscriptionId, jobId }: JobKey): Promise<JobAlert | null> {
  type Row = JobAlert & { [column: string]: unknown };
  const [row] = await runStatement<Row>(pool, LOAD, [subscriptionId, jobId], 'load-job-alert');
  return row ?? null;
}

/** An older event that was delivered late changes nothing. */
const STORE = `
  INSERT INTO job_alerts AS a (subscription_id, job_id, state, run_id, event_id, event_timestamp)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (subscription_id, job_id) DO UPDATE
  SET state = excluded.state, run_id = excluded.run_id, event_id = excluded.event_id,
      event_timestamp = excluded.event_timestamp, updated_at = now()
  WHERE a.event_timestamp COLLATE "C" <= excluded.event_timestamp COLLATE "C"`;

export async function storeJobAlert(
  pool: Pool,
  { subscriptionId, jobId }: JobKey,
  { state, runId, eventId, eventTimestamp }: JobAlert,
): Promise<void> {
  const values = [subscriptionId, jobId, state, runId, eventId, eventTimestamp];
  await runStatement(pool, STORE, values, 'store-job-alert');
}
