// SQL by hand: leases and due times by PostgreSQL’s clock, which all processes share.
import { column, type Pool, queryRows, runStatement } from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import { UnavailableError } from '../http/errors.ts';
import type { LogoutToken } from './logout-token.ts';

/** Access of a user of the identity provider. */
export interface Access {
  issuer: string;
  is_ended: boolean;
  /** Whether it must be checked at the provider before it is used. */
  is_due: boolean;
}

const ACCESS = { issuer: column.text, is_ended: column.flag, is_due: column.flag };

/** Returns null for a user whom operators manage. */
export async function readAccess(pool: Pool, userId: number): Promise<Access | null> {
  const sql = `
    SELECT issuer, ended_at IS NOT NULL AS is_ended, check_due_at <= now() AS is_due
    FROM oidc_identities WHERE user_id = $1`;
  const [access] = await queryRows(pool, ACCESS, sql, [userId], 'oidc_access');
  return access ?? null;
}

/** The lease of a check. It exceeds the deadlines of four requests to the provider and the statements between them. */
const LEASE_SECONDS = 30;

const CLAIMED = {
  id: column.digits,
  user_id: column.digits,
  subject: column.text,
  refresh_token_ciphertext: column.orNull(column.text),
  unchecked_seconds: column.float,
};

/** An identity whose check this process has claimed. */
export interface ClaimedIdentity {
  id: string;
  user_id: string;
  subject: string;
  refresh_token_ciphertext: string | null;
  /** Seconds since the latest sign-in or answered check. */
  unchecked_seconds: number;
  claim: string;
}

/**
 * Claims the check that is due, for one process at a time: a provider that rotates refresh tokens takes the second use
 * of one for a theft. Returns null if another process has claimed it, or none is due.
 */
export async function claimCheck(pool: Pool, userId: number, claim: string): Promise<ClaimedIdentity | null> {
  const sql = `
    UPDATE oidc_identities SET check_claim = $2, claimed_until = now() + make_interval(secs => $3)
    WHERE user_id = $1 AND ended_at IS NULL AND check_due_at <= now()
      AND (claimed_until IS NULL OR claimed_until <= now())
    RETURNING id, user_id, subject, refresh_token_ciphertext,
      extract(epoch FROM now() - checked_at)::float8 AS unchecked_seconds`;
  const [row] = await queryRows(pool, CLAIMED, sql, [userId, claim, LEASE_SECONDS], 'oidc_claim');
  return row ? { ...row, claim } : null;
}

/**
 * Records that the provider confirmed the user. Returns false if a sign-in has replaced the refresh token meanwhile. A
 * logout token that arrived during the check leaves the next check due.
 * @param ciphertext of the new refresh token; null if the provider issued none
 */
export async function recordConfirmed(
  transaction: Prisma.TransactionClient,
  { id, claim }: Pick<ClaimedIdentity, 'id' | 'claim'>,
  ciphertext: string | null,
  validSeconds: number,
): Promise<boolean> {
  const count = await transaction.$executeRaw`
    UPDATE oidc_identities SET checked_at = now(), check_claim = NULL, claimed_until = NULL,
      refresh_token_ciphertext = coalesce(${ciphertext}, refresh_token_ciphertext),
      check_due_at = CASE
        WHEN check_due_at > claimed_until - make_interval(secs => ${LEASE_SECONDS}) THEN check_due_at
        ELSE now() + make_interval(secs => ${validSeconds}) END
    WHERE id = ${BigInt(id)} AND check_claim = ${claim}`;
  return count > 0;
}

/** Stores the refresh token that replaced the one of a check, which continues. */
export async function storeRotatedToken(
  pool: Pool,
  { id, claim }: Pick<ClaimedIdentity, 'id' | 'claim'>,
  ciphertext: string,
): Promise<void> {
  const sql = 'UPDATE oidc_identities SET refresh_token_ciphertext = $3 WHERE id = $1 AND check_claim = $2';
  await runStatement(pool, sql, [id, claim, ciphertext]);
}

/** Ends the lease of a check without a result. */
export async function postponeCheck(
  pool: Pool,
  { id, claim }: Pick<ClaimedIdentity, 'id' | 'claim'>,
  seconds: number,
): Promise<void> {
  const sql = `
    UPDATE oidc_identities
    SET check_claim = NULL, claimed_until = NULL, check_due_at = now() + make_interval(secs => $3)
    WHERE id = $1 AND check_claim = $2`;
  await runStatement(pool, sql, [id, claim, seconds]);
}

/** Ends the access, and by a trigger the sessions. Returns false if the user has signed in again meanwhile. */
export async function endAccess(
  pool: Pool,
  { id, claim }: Pick<ClaimedIdentity, 'id' | 'claim'>,
): Promise<boolean> {
  const sql = `
    UPDATE oidc_identities
    SET ended_at = now(), refresh_token_ciphertext = NULL, check_claim = NULL, claimed_until = NULL
    WHERE id = $1 AND check_claim = $2 RETURNING id`;
  return (await runStatement(pool, sql, [id, claim])).length > 0;
}

/** Records a sign-in, which restores an ended access and replaces the refresh token. */
export async function recordSignIn(
  transaction: Prisma.TransactionClient,
  identity: { id: bigint; sid: string | null; ciphertext: string | null; validSeconds: number },
): Promise<void> {
  const { id, sid, ciphertext, validSeconds } = identity;
  const count = await transaction.$executeRaw`
    UPDATE oidc_identities SET sid = ${sid}, refresh_token_ciphertext = ${ciphertext}, checked_at = now(),
      check_due_at = now() + make_interval(secs => ${validSeconds}), ended_at = NULL, check_claim = NULL,
      claimed_until = NULL
    WHERE id = ${id}`;
  // An operator has unlinked the user since this sign-in read the identity.
  if (count === 0) throw new UnavailableError();
}

/**
 * Ends the sessions that a logout token names, and makes the next check of the access due: the end of a session does
 * not tell whether the user may sign in again. Without a refresh token nothing can be checked, so the access ends if the
 * token names the session of the latest sign-in. Returns the number of users concerned.
 */
export async function recordLogout(pool: Pool, { issuer, subject, sid }: LogoutToken): Promise<number> {
  const sql = `
    WITH identity AS (
      SELECT i.id, i.user_id FROM oidc_identities i
      WHERE i.issuer = $1 AND CASE
        WHEN $2::text IS NOT NULL THEN i.subject = $2
        ELSE i.sid = $3 OR EXISTS (SELECT FROM console_sessions s WHERE s.user_id = i.user_id AND s.oidc_sid = $3) END
    ), sessions AS (
      DELETE FROM console_sessions s USING identity
      WHERE s.user_id = identity.user_id AND ($3::text IS NULL OR s.oidc_sid = $3)
    )
    UPDATE oidc_identities i SET
      check_due_at = CASE WHEN i.refresh_token_ciphertext IS NULL THEN i.check_due_at ELSE now() END,
      ended_at = CASE
        WHEN i.refresh_token_ciphertext IS NULL AND ($3::text IS NULL OR i.sid IS NULL OR i.sid = $3)
        THEN coalesce(i.ended_at, now()) ELSE i.ended_at END
    FROM identity WHERE i.id = identity.id RETURNING i.id`;
  return (await runStatement(pool, sql, [issuer, subject, sid])).length;
}
