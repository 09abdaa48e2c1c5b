import type { Deployment, Plan } from '@runhook/contract';
import {
  credentialKind,
  type Database,
  hashCredential,
  type License,
  type PermissionSet,
  runStatement,
} from '@runhook/database';
import type { Account, Principal, UserPrincipal } from '../domain/principal.ts';

interface AccountColumns {
  account_id: string;
  identifier: string;
  plan: Plan;
  deployment: Deployment;
  permission_sets: PermissionSet[];
}

/** A user without a membership has one row, with nulls where the membership would be. */
export type UserRow = { user_id: string; license: License } & (AccountColumns | { account_id: null });
type TokenRow = { token_id: string } & AccountColumns;

/** What {@link userPrincipal} needs, from `users u` and {@link USER_MEMBERSHIPS}. */
export const USER_COLUMNS = `
  u.id AS user_id, m.license, m.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment`;
export const USER_MEMBERSHIPS = `
  LEFT JOIN memberships m ON m.user_id = u.id
  LEFT JOIN accounts a ON a.id = m.account_id`;

const USER_BY_KEY = `
  SELECT ${USER_COLUMNS} FROM users u ${USER_MEMBERSHIPS} WHERE u.api_key_hash = $1 ORDER BY a.id`;

const TOKEN_BY_HASH = `
  SELECT t.id AS token_id, t.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM service_tokens t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.token_hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

/**
 * Who holds the credential, in one query; null when nobody does, or when it was revoked or has expired. Asked anew for
 * each request, so that what is rotated or revoked is refused by every process at once.
 *
 * How long a refusal takes tells nothing: what is looked up is the SHA-256 of what the caller sent, so whatever a
 * comparison in the index gives away is about a hash that no caller can steer towards a stored one.
 */
export async function findPrincipal(pool: Database['pool'], credential: string): Promise<Principal | null> {
  const kind = credentialKind(credential);
  if (kind === null) return null;
  const hash = hashCredential(credential);
  return kind === 'user' ? await findUser(pool, hash) : await findServiceToken(pool, hash);
}

async function findUser(pool: Database['pool'], hash: Uint8Array): Promise<Principal | null> {
  const rows = await runStatement<UserRow>(pool, USER_BY_KEY, [hash], 'user_by_key');
  return rows[0] ? userPrincipal(rows[0].user_id, rows) : null;
}

export function userPrincipal(userId: string, rows: readonly UserRow[]): UserPrincipal {
  const memberships = rows.flatMap((row) =>
    row.account_id === null
      ? []
      : [{ account: accountOf(row), license: row.license, permissionSets: row.permission_sets }],
  );
  return { kind: 'user', userId: Number(userId), memberships };
}

async function findServiceToken(pool: Database['pool'], hash: Uint8Array): Promise<Principal | null> {
  const [row] = await runStatement<TokenRow>(pool, TOKEN_BY_HASH, [hash], 'token_by_hash');
  if (!row) return null;
  const { token_id, permission_sets: permissionSets } = row;
  return { kind: 'service_token', tokenId: Number(token_id), account: accountOf(row), permissionSets };
}

function accountOf({ account_id, identifier, plan, deployment }: AccountColumns): Account {
  return { id: Number(account_id), identifier, plan, deployment };
}
