import { type Database, runStatement } from '@runhook/database';

type Pool = Database['pool'];

/** A request's hold on its key. */
export interface Claim {
  /** Stands for principal, request and key. */
  id: string;
  bodyHash: Uint8Array;
  /** Of this request alone: what takes over from a dead one is not ended by it, should it live after all. */
  claim: string;
}

/** What is known of a key that another request holds or held. */
export interface KnownKey {
  hasSameBody: boolean;
  /** Null while the first request is running. */
  answerCiphertext: string | null;
}

// A day after its first request a key is as good as new. A request that has run for a minute died with its process; its
// place goes to another with the same body only, since nobody knows what it has done.
const CLAIM = `
  INSERT INTO idempotency_keys AS k (id, body_hash, claim, claimed_until, expires_at)
  VALUES ($1, $2, $3, now() + interval '1 minute', now() + interval '24 hours')
  ON CONFLICT (id) DO UPDATE
  SET body_hash = EXCLUDED.body_hash, claim = EXCLUDED.claim, claimed_until = EXCLUDED.claimed_until,
    expires_at = EXCLUDED.expires_at, answer_ciphertext = NULL
  WHERE k.expires_at <= now()
    OR (k.answer_ciphertext IS NULL AND k.claimed_until <= now() AND k.body_hash = EXCLUDED.body_hash)
  RETURNING id`;

/** Whether the key is this request's now. */
export async function claimKey(pool: Pool, { id, bodyHash, claim }: Claim): Promise<boolean> {
  return (await runStatement(pool, CLAIM, [id, bodyHash, claim])).length > 0;
}

const FIND = `
  SELECT body_hash = $2 AS "hasSameBody", answer_ciphertext AS "answerCiphertext" FROM idempotency_keys WHERE id = $1`;

export async function findKey(pool: Pool, { id, bodyHash }: Claim): Promise<KnownKey | null> {
  type Row = KnownKey & { [column: string]: unknown };
  return (await runStatement<Row>(pool, FIND, [id, bodyHash]))[0] ?? null;
}

const KEEP = `UPDATE idempotency_keys SET answer_ciphertext = $3 WHERE id = $1 AND claim = $2`;

/** Keeps the answer to the request that holds the key. */
export async function keepAnswer(pool: Pool, { id, claim }: Claim, answerCiphertext: string): Promise<void> {
  await runStatement(pool, KEEP, [id, claim, answerCiphertext]);
}

const RELEASE = `DELETE FROM idempotency_keys WHERE id = $1 AND claim = $2`;

/** Lets the key go, as if it had never been used. */
export async function releaseKey(pool: Pool, { id, claim }: Claim): Promise<void> {
  await runStatement(pool, RELEASE, [id, claim]);
}
