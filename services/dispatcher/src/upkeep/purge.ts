import { type Queryable, runStatement } from '@runhook/database';

/** What went, by kind. */
export interface Purged {
  runs: number;
  subscriptions: number;
  auditEntries: number;
}

export interface PurgeOptions {
  logRetentionDays: number;
  runRetentionDays: number;
  /** Ends it after the batch that it is at. */
  stopping?: AbortSignal;
  /** Rows of one statement; 1,000 when omitted, so that none holds its locks for long. */
  batchSize?: number;
}

/** Lets runs and deleted subscriptions go whose time is over, batch by batch. Safe to repeat, and beside itself. */
export async function purge(database: Queryable, options: PurgeOptions): Promise<Purged> {
  const { logRetentionDays, runRetentionDays, stopping, batchSize = 1_000 } = options;
  async function inBatches(text: string, days: number, name: string): Promise<number> {
    for (let gone = 0; ; ) {
      const rows = await runStatement(database, text, [days, batchSize], name);
      gone += rows.length;
      if (rows.length < batchSize || stopping?.aborted) return gone;
    }
  }
  return {
    runs: await inBatches(DELETE_RUNS, runRetentionDays, 'delete-old-runs'),
    subscriptions: await inBatches(DELETE_SUBSCRIPTIONS, logRetentionDays, 'delete-old-subscriptions'),
    auditEntries: await inBatches(DELETE_AUDIT_ENTRIES, AUDIT_RETENTION_DAYS, 'delete-old-audit-entries'),
  };
}

// Account by account, since that has an index which is needed anyway: one by time alone would be written for each run.
// Without a lock of its own, which a table that is spread over servers does not give: nobody reports a run of so long ago.
const DELETE_RUNS = `
  DELETE FROM runs WHERE (account_id, id) IN (
    SELECT old.account_id, old.id
    FROM accounts a CROSS JOIN LATERAL (
      SELECT r.account_id, r.id FROM runs r
      WHERE r.account_id = a.id AND r.created_at < now() - $1::int * interval '1 day'
      ORDER BY r.created_at LIMIT $2) old
    LIMIT $2)
  RETURNING id`;

/** The database lets nobody delete a younger one. */
const AUDIT_RETENTION_DAYS = 365;

const DELETE_AUDIT_ENTRIES = `
  DELETE FROM audit_entries WHERE id IN (
    SELECT id FROM audit_entries WHERE created_at < now() - $1::int * interval '1 day'
    LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING id`;

/**
 * A deleted subscription has no deliveries but those made before; they go with their days, and what is still queued must
 * find out from the row until then. Its recoveries go with it.
 */
const DELETE_SUBSCRIPTIONS = `
  DELETE FROM subscriptions WHERE id IN (
    SELECT s.id FROM subscriptions s
    WHERE s.deleted_at < now() - $1::int * interval '1 day'
      AND NOT has_deliveries(s.account_id, s.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING id`;

const SECRETS_BATCH_SIZE = 500;

/**
 * Erases old secrets whose rotation has ended. Attempts are signed with the new ones alone from the end on, whenever this
 * comes round: it is about what is at rest, not about what is sent. Answers how many. Safe beside itself.
 */
export async function eraseOldSecrets(database: Queryable, batchSize = SECRETS_BATCH_SIZE): Promise<number> {
  for (let erased = 0; ; ) {
    const rows = await runStatement(database, ERASE_SECRETS, [batchSize], 'erase-old-secrets');
    erased += rows.length;
    if (rows.length < batchSize) return erased;
  }
}

const ERASE_SECRETS = `
  UPDATE subscriptions s SET
    hmac_secret_ciphertext = s.next_hmac_secret_ciphertext, next_hmac_secret_ciphertext = NULL,
    rotation_started_at = NULL, rotation_ends_at = NULL
  FROM (
    SELECT id FROM subscriptions WHERE rotation_ends_at <= now()
    ORDER BY id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
  ) AS ended
  WHERE s.id = ended.id
  RETURNING s.id`;
