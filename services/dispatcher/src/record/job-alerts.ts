import { type Pool, runStatement } from '@runhook/database';
import type { JobAlert } from '../policy/job-alerts.ts';

/** A job at a target of a subscription. */
export interface JobKey {
  subscriptionId: string;
  /** Digits. */
  jobId: string;
  /** Digest of the target: another one has not received the alerts. */
  target: string;
}

const LOAD = `
  SELECT state, run_id::text AS "runId", event_id AS "eventId",
    (extract(epoch FROM run_ended_at) * 1000)::float8 AS "runEndedAtMs"
  FROM job_alerts WHERE subscription_id = $1 AND job_id = $2 AND target = $3`;

/** Returns the last delivered event of each state of a job. */
export async function loadJobAlerts(
  pool: Pool,
  { subscriptionId, jobId, target }: JobKey,
): Promise<JobAlert[]> {
  type Row = JobAlert & { [column: string]: unknown };
  return await runStatement<Row>(pool, LOAD, [subscriptionId, jobId, target], 'load-job-alerts');
}

/**
 * An older event that was delivered late changes nothing. A time in the future, of a wrong clock, would keep later runs
 * from being reported.
 */
const STORE = `
  INSERT INTO job_alerts AS a (subscription_id, job_id, target, state, run_id, event_id, run_ended_at)
  VALUES ($1, $2, $3, $4, $5, $6, least(to_timestamp($7::float8 / 1000), now()))
  ON CONFLICT (subscription_id, job_id, target, state) DO UPDATE
  SET run_id = excluded.run_id, event_id = excluded.event_id, run_ended_at = excluded.run_ended_at, updated_at = now()
  WHERE a.run_ended_at <= excluded.run_ended_at`;

export async function storeJobAlert(
  pool: Pool,
  { subscriptionId, jobId, target }: JobKey,
  { state, runId, eventId, runEndedAtMs }: JobAlert,
): Promise<void> {
  const values = [subscriptionId, jobId, target, state, runId, eventId, runEndedAtMs];
  await runStatement(pool, STORE, values, 'store-job-alert');
}
