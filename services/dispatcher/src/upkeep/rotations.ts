import { type Queryable, runStatement } from '@runhook/database';

const BATCH_SIZE = 500;

/**
 * Erases old secrets whose rotation has ended. Attempts are signed with the new ones alone from the end on, whenever this
 * comes round: it is about what is at rest, not about what is sent. Answers how many. Safe beside itself.
 */
export async function eraseOldSecrets(database: Queryable, batchSize = BATCH_SIZE): Promise<number> {
  for (let erased = 0; ; ) {
    const rows = await runStatement(database, ERASE, [batchSize], 'erase-old-secrets');
    erased += rows.length;
    if (rows.length < batchSize) return erased;
  }
}

const ERASE = `
  UPDATE subscriptions s SET
    hmac_secret_ciphertext = s.next_hmac_secret_ciphertext, next_hmac_secret_ciphertext = NULL,
    rotation_started_at = NULL, rotation_ends_at = NULL
  FROM (
    SELECT id FROM subscriptions WHERE rotation_ends_at <= now()
    ORDER BY id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
  ) AS ended
  WHERE s.id = ended.id
  RETURNING s.id`;
