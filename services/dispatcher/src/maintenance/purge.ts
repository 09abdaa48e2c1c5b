import { type BatchOptions, type Queryable, runEach, runInBatches } from '@runhook/database';
import type { Quarantine } from '../record/quarantine.ts';
import { changeSubscriptions, type SubscriptionChange } from './change-subscriptions.ts';
import { purgeRuns } from './purge-runs.ts';

/** Number of deleted rows, by kind. */
export interface Purged {
  idempotencyKeys: number;
  recoveries: number;
  notices: number;
  incidents: number;
  jobAlerts: number;
  runs: number;
  runRequests: number;
  subscriptions: number;
  auditEntries: number;
  quarantinedItems: number;
}

export interface PurgeOptions extends BatchOptions {
  logRetentionDays: number;
  runRetentionDays: number;
  /** Called with each kind whose rows were deleted, even if another kind fails later. */
  onPurged?: (kind: keyof Purged, count: number) => void;
}

/**
 * Deletes rows whose retention is over, in batches. Kinds are independent: a statement that fails leaves its kind to the
 * next pass. Safe to repeat, and to run concurrently.
 * @throws AggregateError when a kind failed, after the others have ended
 */
export async function purge(database: Queryable, options: PurgeOptions): Promise<Purged> {
  const { logRetentionDays, runRetentionDays, onPurged } = options;
  const purgeKind =
    (kind: keyof Purged, { name, text }: { name: string; text: string }, ...values: number[]) =>
    async () => {
      const count = await runInBatches(database, { text, values, name }, options);
      if (count > 0) onPurged?.(kind, count);
      return count;
    };
  // Subscriptions come after recoveries, notices and incidents, because their deletion cascades to the remaining ones.
  return await runEach<Purged>({
    idempotencyKeys: purgeKind('idempotencyKeys', DELETE_IDEMPOTENCY_KEYS),
    recoveries: purgeKind('recoveries', DELETE_RECOVERIES, logRetentionDays),
    notices: purgeKind('notices', DELETE_NOTICES, logRetentionDays),
    incidents: purgeKind('incidents', DELETE_INCIDENTS, logRetentionDays),
    jobAlerts: purgeKind('jobAlerts', DELETE_JOB_ALERTS, logRetentionDays),
    async runs() {
      const count = await purgeRuns(database, runRetentionDays, options);
      if (count > 0) onPurged?.('runs', count);
      return count;
    },
    runRequests: purgeKind('runRequests', DELETE_RUN_REQUESTS),
    subscriptions: purgeKind('subscriptions', DELETE_SUBSCRIPTIONS, logRetentionDays),
    auditEntries: purgeKind('auditEntries', DELETE_AUDIT_ENTRIES, AUDIT_RETENTION_DAYS),
    quarantinedItems: purgeKind('quarantinedItems', DELETE_QUARANTINED, logRetentionDays),
  });
}

// The row lock is needed because management may claim an expired key again, which changes expires_at.
const DELETE_IDEMPOTENCY_KEYS = {
  name: 'delete-expired-idempotency-keys',
  text: `
    DELETE FROM idempotency_keys WHERE id IN (
      SELECT id FROM idempotency_keys WHERE expires_at <= now()
      ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING id`,
};

const deleteOlder = (table: string, column: string, name: string) => ({
  name,
  text: `
    DELETE FROM ${table} WHERE id IN (
      SELECT id FROM ${table} WHERE ${column} < now() - $1::int * interval '1 day'
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id`,
});

const DELETE_RECOVERIES = deleteOlder('recoveries', 'completed_at', 'delete-old-recoveries');
/** Deletes notices by their creation: they are not sent after a day, so unsent ones are deleted as well. */
const DELETE_NOTICES = deleteOlder('notices', 'created_at', 'delete-old-notices');
const DELETE_INCIDENTS = deleteOlder('incidents', 'closed_at', 'delete-old-incidents');
// Takes no row lock, for which the dispatchers' role would need the permission to change entries.
const DELETE_AUDIT_ENTRIES = {
  name: 'delete-old-audit-entries',
  text: `
    DELETE FROM audit_entries WHERE id IN (
      SELECT id FROM audit_entries WHERE created_at < now() - $1::int * interval '1 day' LIMIT $2)
    RETURNING id`,
};
const DELETE_QUARANTINED = {
  name: 'delete-old-quarantined',
  text: `
    DELETE FROM quarantined_items WHERE (account_id, kind, key) IN (
      SELECT account_id, kind, key FROM quarantined_items
      WHERE created_at < now() - $1::int * interval '1 day'
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING key`,
};
const DELETE_JOB_ALERTS = {
  name: 'delete-old-job-alerts',
  text: `
    DELETE FROM job_alerts WHERE (subscription_id, job_id, target, state) IN (
      SELECT subscription_id, job_id, target, state FROM job_alerts WHERE updated_at < now() - $1::int * interval '1 day'
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING job_id`,
};
/** Retains the token of a runner that returns after its run has ended: its reports are then rejected. */
const DELETE_RUN_REQUESTS = {
  name: 'delete-ended-run-requests',
  text: `
    DELETE FROM run_requests WHERE (account_id, run_id) IN (
      SELECT account_id, run_id FROM run_requests WHERE ended_at < now() - interval '1 day' LIMIT $1)
    RETURNING run_id`,
};
/** A trigger rejects the deletion of younger entries. */
const AUDIT_RETENTION_DAYS = 365;

/**
 * Deletes jobs that are older than the retention of runs and have neither runs nor a webhook that names them, unless
 * their definition was set: users expect to find such a job, however rarely it runs, until they delete it. A separate
 * task, because each batch may read all runs: no index has their job. Safe to run concurrently.
 * @returns the number of deleted jobs
 */
export async function purgeJobs(
  database: Queryable,
  { runRetentionDays, ...options }: BatchOptions & Pick<PurgeOptions, 'runRetentionDays'>,
): Promise<number> {
  const batchOptions = { batchSize: JOBS_BATCH_SIZE, ...options };
  return await runInBatches(database, { ...DELETE_JOBS, values: [runRetentionDays] }, batchOptions);
}

const JOBS_BATCH_SIZE = 10_000;
const DELETE_JOBS = {
  name: 'delete-unused-jobs',
  text: `
    DELETE FROM jobs WHERE id IN (
      SELECT j.id FROM jobs j
      WHERE j.created_at < now() - $1::int * interval '1 day'
        AND (j.definition IS NULL OR j.deleted_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM runs r WHERE r.account_id = j.account_id AND r.job_id = j.id)
        AND NOT EXISTS (
          SELECT FROM subscriptions s
          WHERE s.account_id = j.account_id AND s.deleted_at IS NULL AND j.id = ANY (s.job_ids))
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id`,
};

// The deliveries of a deleted subscription are deleted with their days; its queued jobs read the row until then.
const DELETE_SUBSCRIPTIONS = {
  name: 'delete-old-subscriptions',
  text: `
    DELETE FROM subscriptions WHERE id IN (
      SELECT s.id FROM subscriptions s
      WHERE s.deleted_at < now() - $1::int * interval '1 day'
        AND NOT has_deliveries(s.account_id, s.id)
      LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING id`,
};

/**
 * Erases the old secrets and private keys of rotations that are over. From the end of a rotation attempts use only the new secret, so
 * this concerns secrets at rest. Safe to run concurrently.
 * @returns the number of erased secrets
 */
export async function eraseOldSecrets(
  database: Queryable,
  quarantine: Pick<Quarantine, 'setAsideStatus'>,
  pageSize?: number,
): Promise<number> {
  return await changeSubscriptions(database, quarantine, ERASE_SECRETS, pageSize);
}

const ERASE_SECRETS: SubscriptionChange = {
  name: 'erase-old-secrets',
  condition: 's.rotation_ends_at <= now()',
  values: [],
  statement: (ids) => `
    UPDATE subscriptions SET
      hmac_secret_ciphertext = COALESCE(next_hmac_secret_ciphertext, hmac_secret_ciphertext),
      next_hmac_secret_ciphertext = NULL,
      signature_key_ciphertext = COALESCE(next_signature_key_ciphertext, signature_key_ciphertext),
      signature_public_key = COALESCE(next_signature_public_key, signature_public_key),
      next_signature_key_ciphertext = NULL, next_signature_public_key = NULL,
      rotation_started_at = NULL, rotation_ends_at = NULL
    WHERE id IN (${ids})
    RETURNING id`,
};
