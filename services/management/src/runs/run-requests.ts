// SQL by hand: one statement leases the next run to a runner, by PostgreSQL’s clock, which all processes share.
import { createHash, randomBytes } from 'node:crypto';
import { column, type Queryable, queryRows, runStatement } from '@runhook/database';
import { LeaseLostError } from '../http/errors.ts';
import { timeSql } from './statements.ts';

/** Duration of a lease from its last renewal. */
const LEASE_MS = 60_000;

/** Maximum number of runs of an account that wait or are in progress after a trigger. */
export const OPEN_REQUESTS_MAX = 10_000;

export const RUNNER_CHARACTERS_MAX = 255;

const hashToken = (token: string) => createHash('sha256').update(token).digest();

/**
 * Returns whether the account has fewer than {@link OPEN_REQUESTS_MAX} triggered runs that have not ended. Their requests
 * end a little later than the runs, so the runs are read only if the requests are too many.
 */
export async function hasRequestCapacity(database: Queryable, accountId: number): Promise<boolean> {
  const count = (isExact: boolean) => countOpen(database, accountId, isExact);
  return (await count(false)) < OPEN_REQUESTS_MAX || (await count(true)) < OPEN_REQUESTS_MAX;
}

const IN_PROGRESS = `
  JOIN runs r ON r.account_id = q.account_id AND r.id = q.run_id AND r.status IN ('Queued', 'Starting', 'Running')`;

/** @param isExact leaves out requests whose runs have ended */
async function countOpen(database: Queryable, accountId: number, isExact: boolean): Promise<number> {
  const text = `
    SELECT count(*) FROM (
      SELECT FROM run_requests q ${isExact ? IN_PROGRESS : ''}
      WHERE q.account_id = $1 AND q.ended_at IS NULL LIMIT ${OPEN_REQUESTS_MAX}) open`;
  const [row] = await queryRows(database, { count: column.digits }, text, [accountId]);
  return Number(row?.count);
}

export async function insertRequest(
  database: Queryable,
  request: { accountId: number; runId: number; jobId: number },
): Promise<void> {
  await runStatement(database, `INSERT INTO run_requests (account_id, run_id, job_id) VALUES ($1, $2, $3)`, [
    request.accountId,
    request.runId,
    request.jobId,
  ]);
}

/** Runs that a runner may claim: queued ones, and those whose runner's lease has expired. */
export const CLAIMABLE_SQL = `
  q.ended_at IS NULL AND (q.lease_expires_at IS NULL OR q.lease_expires_at <= now())
  AND r.status IN ('Queued', 'Starting', 'Running') AND (r.status = 'Queued') = (q.lease_expires_at IS NULL)`;

// SKIP LOCKED: two runners that claim at the same time get different runs. The run is locked, too, because a runner
// may be starting it without a lease: that locks no request.
const LEASE = `
  UPDATE run_requests leased
  SET attempts = leased.attempts + 1, lease_token_hash = $4, runner = $5,
    lease_expires_at = now() + $6::int * interval '1 millisecond'
  FROM (
    SELECT q.account_id, q.run_id FROM run_requests q
    JOIN runs r ON r.account_id = q.account_id AND r.id = q.run_id
    WHERE q.account_id = $1 AND ($2::bigint[] IS NULL OR q.job_id = ANY ($2)) AND ($3::bigint IS NULL OR q.run_id = $3)
      AND ${CLAIMABLE_SQL}
    ORDER BY q.created_at, q.run_id LIMIT 1 FOR UPDATE OF q, r SKIP LOCKED
  ) found
  WHERE leased.account_id = found.account_id AND leased.run_id = found.run_id
  RETURNING leased.run_id, leased.attempts, ${timeSql('lease_expires_at')}`;

const RENEWED = { lease_expires_at: column.text };
const LEASED = { run_id: column.digits, attempts: column.integer, ...RENEWED };

/** Which run a runner claims; null matches all. */
export interface ClaimFilter {
  jobIds: readonly number[] | null;
  runId: number | null;
  /** Name of the runner, for people. */
  runner: string | null;
}

export interface Lease {
  runId: number;
  token: string;
  /** Number of claims of the run, this one included. */
  attempt: number;
  /** ISO 8601 UTC with microseconds. */
  expiresAt: string;
}

/** Leases the oldest matching run that no runner has, and locks it. Returns null without one. */
export async function leaseRun(
  database: Queryable,
  accountId: number,
  { jobIds, runId, runner }: ClaimFilter,
): Promise<Lease | null> {
  const token = randomBytes(32).toString('base64url');
  const values = [accountId, jobIds, runId, hashToken(token), runner, LEASE_MS];
  const [row] = await queryRows(database, LEASED, LEASE, values);
  if (row === undefined) return null;
  return {
    runId: Number(row.run_id),
    token,
    attempt: row.attempts,
    expiresAt: row.lease_expires_at,
  };
}

const RENEW = `
  UPDATE run_requests SET lease_expires_at = now() + $4::int * interval '1 millisecond'
  WHERE account_id = $1 AND run_id = $2 AND lease_token_hash = $3
  RETURNING ${timeSql('lease_expires_at')}`;

/**
 * Renews the lease of a run for the runner with this token and locks its request until the transaction ends. Must precede
 * every other statement of a report with a token, and throws a 409 if another runner has claimed the run since.
 * @returns the time at which the lease expires, ISO 8601 UTC with microseconds
 */
export async function renewLease(
  database: Queryable,
  { accountId, runId, token }: { accountId: number; runId: number; token: string },
): Promise<string> {
  const [row] = await queryRows(database, RENEWED, RENEW, [accountId, runId, hashToken(token), LEASE_MS]);
  if (row === undefined)
    throw new LeaseLostError('The lease of this run has ended: another runner may have claimed it.');
  return row.lease_expires_at;
}
