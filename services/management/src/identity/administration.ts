import { hash } from '@node-rs/argon2';
import { type Deployment, type Plan, secondsTimestamp } from '@runhook/contract';
import {
  type Database,
  inTransaction,
  type License,
  type PermissionSet,
  type Pool,
  runStatement,
} from '@runhook/database';
import type { AccountView } from './accounts.ts';

type AccountPool = Database['pool'];

/** How an operator names an account. */
export type AccountReference = { id: number } | { identifier: string };

type AccountRow = Omit<AccountView, 'id' | 'created_at'> & { id: string; created_at: Date };

const ACCOUNT_COLUMNS = 'id, identifier, name, plan, deployment, created_at';

const SELECT_ACCOUNT = `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE id = $1 OR identifier = $2`;

export async function findAccount(
  pool: AccountPool,
  reference: AccountReference,
): Promise<AccountView | null> {
  const values = 'id' in reference ? [reference.id, null] : [null, reference.identifier];
  const [row] = await runStatement<AccountRow>(pool, SELECT_ACCOUNT, values);
  return row ? accountView(row) : null;
}

const SELECT_ACCOUNTS = `
  SELECT ${ACCOUNT_COLUMNS} FROM accounts
  WHERE ($1::text IS NULL OR strpos(lower(name), lower($1)) > 0)
    AND ($2::text IS NULL OR plan = $2) AND ($3::text IS NULL OR deployment = $3)
  ORDER BY accounts.id`;

/** Oldest first. @param filter `name` is a part of it, in any case */
export async function listAccounts(
  pool: AccountPool,
  filter: { name?: string; plan?: Plan; deployment?: Deployment },
): Promise<AccountView[]> {
  const values = [filter.name ?? null, filter.plan ?? null, filter.deployment ?? null];
  return (await runStatement<AccountRow>(pool, SELECT_ACCOUNTS, values)).map(accountView);
}

const UPDATE = `
  UPDATE accounts SET name = COALESCE($2, name), plan = COALESCE($3, plan), deployment = COALESCE($4, deployment)
  WHERE id = $1 RETURNING ${ACCOUNT_COLUMNS}`;

/** What is omitted stays. Null when the account is gone. */
export async function updateAccount(
  pool: AccountPool,
  id: number,
  changes: { name?: string; plan?: Plan; deployment?: Deployment },
): Promise<AccountView | null> {
  const values = [id, changes.name ?? null, changes.plan ?? null, changes.deployment ?? null];
  const [row] = await runStatement<AccountRow>(pool, UPDATE, values);
  return row ? accountView(row) : null;
}

function accountView(row: AccountRow): AccountView {
  return { ...row, id: Number(row.id), created_at: secondsTimestamp(row.created_at) };
}

type UserPool = Database['pool'];

export interface UserMembershipView {
  account_id: number;
  license: License;
  permission_sets: PermissionSet[];
}

export interface UserView {
  id: number;
  email: string;
  name: string;
  memberships: UserMembershipView[];
}

/** How an operator names a user. E-mail addresses are kept in lower case. */
export type UserReference = { id: number } | { email: string };

const SELECT_USER = 'SELECT id, email, name FROM users WHERE id = $1 OR email = $2';

export async function findUser(
  pool: UserPool,
  reference: UserReference,
): Promise<{ id: number; email: string; name: string } | null> {
  const values = 'id' in reference ? [reference.id, null] : [null, reference.email];
  const [row] = await runStatement<{ id: string; email: string; name: string }>(pool, SELECT_USER, values);
  return row ? { ...row, id: Number(row.id) } : null;
}

const SELECT_USERS = `
  SELECT u.id, u.email, u.name, COALESCE(
    json_agg(
      json_build_object('account_id', m.account_id, 'license', m.license, 'permission_sets', m.permission_sets)
      ORDER BY m.account_id
    ) FILTER (WHERE m.account_id IS NOT NULL), '[]') AS memberships
  FROM users u LEFT JOIN memberships m ON m.user_id = u.id
  WHERE ($1::text IS NULL OR strpos(u.email, lower($1)) > 0)
    AND ($2::text IS NULL OR strpos(lower(u.name), lower($2)) > 0)
    AND ($3::bigint IS NULL OR EXISTS (SELECT FROM memberships WHERE user_id = u.id AND account_id = $3))
  GROUP BY u.id
  ORDER BY u.id`;

/** Oldest first, with all their memberships. @param filter `email` and `name` are parts, in any case */
export async function listUsers(
  pool: UserPool,
  filter: { email?: string; name?: string; accountId?: number },
): Promise<UserView[]> {
  type Row = Omit<UserView, 'id'> & { id: string };
  const values = [filter.email ?? null, filter.name ?? null, filter.accountId ?? null];
  const rows = await runStatement<Row>(pool, SELECT_USERS, values);
  return rows.map((row) => ({ ...row, id: Number(row.id) }));
}

const SET = 'UPDATE users SET password_hash = $2 WHERE id = $1 RETURNING id';

// A statement of its own: it must see a session that a sign-in committed while SET waited for the user's row.
const END_SESSIONS = 'DELETE FROM console_sessions WHERE user_id = $1 RETURNING user_id';

/**
 * Sets the password and ends the console sessions of the user: a password that is reset because it is known to others
 * must not leave them one. Null when there is no such user. The API key stays.
 */
export async function resetPassword(
  pool: Pool,
  userId: number,
  password: string,
): Promise<{ sessionsEnded: number } | null> {
  const passwordHash = await hash(password);
  return await inTransaction(pool, async (transaction) => {
    const users = await runStatement(transaction, SET, [userId, passwordHash]);
    if (users.length === 0) return null;
    return { sessionsEnded: (await runStatement(transaction, END_SESSIONS, [userId])).length };
  });
}

type MembershipPool = Database['pool'];

export interface MembershipView {
  account_id: number;
  user_id: number;
  license: License;
  permission_sets: PermissionSet[];
}

export interface MembershipKey {
  accountId: number;
  userId: number;
}

// xmax tells an inserted row from an updated one.
const UPSERT = `
  INSERT INTO memberships AS m (account_id, user_id, license, permission_sets)
  VALUES ($1, $2, COALESCE($3, $5), COALESCE($4::text[], '{}'))
  ON CONFLICT (account_id, user_id) DO UPDATE
  SET license = COALESCE($3, m.license), permission_sets = COALESCE($4::text[], m.permission_sets)
  RETURNING license, permission_sets, (m.xmax = 0) AS is_new`;

/** The licence of a new member when none is named: the one that opens least. */
export const LICENSE_DEFAULT = 'read_only' satisfies License;

/**
 * Makes the user a member or changes what the member holds, in one statement. What is omitted stays as it is; for a
 * new member it is {@link LICENSE_DEFAULT} and no permission set.
 */
export async function putMembership(
  pool: MembershipPool,
  { accountId, userId }: MembershipKey,
  fields: { license?: License; permissionSets?: PermissionSet[] },
): Promise<MembershipView & { is_new: boolean }> {
  const values = [accountId, userId, fields.license ?? null, fields.permissionSets ?? null, LICENSE_DEFAULT];
  type Row = Omit<MembershipView, 'account_id' | 'user_id'> & { is_new: boolean };
  const [row] = await runStatement<Row>(pool, UPSERT, values);
  return { account_id: accountId, user_id: userId, ...(row as Row) };
}

/** Whether there was such a membership. */
export async function removeMembership(
  pool: MembershipPool,
  { accountId, userId }: MembershipKey,
): Promise<boolean> {
  const text = 'DELETE FROM memberships WHERE account_id = $1 AND user_id = $2 RETURNING user_id';
  return (await runStatement(pool, text, [accountId, userId])).length > 0;
}

type TokenPool = Database['pool'];

/** A service token as it may be shown: never the token. Times are ISO 8601 UTC. */
export interface ServiceTokenView {
  id: number;
  account_id: number;
  name: string;
  permission_sets: PermissionSet[];
  created_at: string;
  /** Null when it never does. */
  expires_at: string | null;
  revoked_at: string | null;
}

interface TokenRow {
  id: string;
  account_id: string;
  name: string;
  permission_sets: PermissionSet[];
  created_at: Date;
  expires_at: Date | null;
  revoked_at: Date | null;
}

const TOKEN_COLUMNS = 'id, account_id, name, permission_sets, created_at, expires_at, revoked_at';

export async function findServiceToken(pool: TokenPool, id: number): Promise<ServiceTokenView | null> {
  const text = `SELECT ${TOKEN_COLUMNS} FROM service_tokens WHERE id = $1`;
  const [row] = await runStatement<TokenRow>(pool, text, [id]);
  return row ? tokenView(row) : null;
}

const SELECT_TOKENS = `
  SELECT ${TOKEN_COLUMNS} FROM service_tokens
  WHERE ($1::bigint IS NULL OR account_id = $1) AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
    AND ($3::text[] IS NULL OR permission_sets && $3)
  ORDER BY service_tokens.id`;

/** Oldest first. @param filter `name` is a part of it, in any case; of the permission sets one must be held */
export async function listServiceTokens(
  pool: TokenPool,
  filter: { accountId?: number; name?: string; permissionSets?: PermissionSet[] },
): Promise<ServiceTokenView[]> {
  const values = [filter.accountId ?? null, filter.name ?? null, filter.permissionSets ?? null];
  return (await runStatement<TokenRow>(pool, SELECT_TOKENS, values)).map(tokenView);
}

// A second revocation must not move the time of the first.
const REVOKE = `
  WITH before AS (SELECT id, revoked_at FROM service_tokens WHERE id = $1 FOR UPDATE)
  UPDATE service_tokens t SET revoked_at = COALESCE(t.revoked_at, clock_timestamp())
  FROM before WHERE t.id = before.id
  RETURNING t.id, t.account_id, t.name, t.permission_sets, t.created_at, t.expires_at, t.revoked_at,
    before.revoked_at IS NOT NULL AS was_revoked`;

/** Refused from the moment this returns; `wasRevoked` when it was already. Null when there is no such token. */
export async function revokeServiceToken(
  pool: TokenPool,
  id: number,
): Promise<{ token: ServiceTokenView; wasRevoked: boolean } | null> {
  const [row] = await runStatement<TokenRow & { was_revoked: boolean }>(pool, REVOKE, [id]);
  return row ? { token: tokenView(row), wasRevoked: row.was_revoked } : null;
}

function tokenView(row: TokenRow): ServiceTokenView {
  return {
    id: Number(row.id),
    account_id: Number(row.account_id),
    name: row.name,
    permission_sets: row.permission_sets,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    revoked_at: row.revoked_at?.toISOString() ?? null,
  };
}
