import type { Deployment, Plan } from '@runhook/contract';
import {
  credentialKind,
  type Database,
  hashCredential,
  type License,
  type PermissionSet,
  runStatement,
} from '@runhook/database';
import type { Account, Principal } from '../domain/principal.ts';

interface AccountColumns {
  account_id: string;
  identifier: string;
  plan: Plan;
  deployment: Deployment;
  permission_sets: PermissionSet[];
}

/** A user without a membership has one row, with nulls where the membership would be. */
type UserRow = { user_id: string; license: License } & (AccountColumns | { account_id: null });
type TokenRow = { token_id: string } & AccountColumns;

const USER_BY_KEY = `
  SELECT u.id AS user_id, m.license, m.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM users u
  LEFT JOIN memberships m ON m.user_id = u.id
  LEFT JOIN accounts a ON a.id = m.account_id
  WHERE u.api_key_hash = $1`;

const TOKEN_BY_HASH = `
  SELECT t.id AS token_id, t.permission_sets, a.id AS account_id, a.identifier, a.plan, a.deployment
  FROM service_tokens t
  JOIN accounts a ON a.id = t.account_id
  WHERE t.token_hash = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`;

/** Who holds the credential, in one query; null when nobody does, or when it was revoked or has expired. */
export async function findPrincipal(pool: Database['pool'], credential: string): Promise<Principal | null> {
  const kind = credentialKind(credential);
  if (kind === null) return null;
  const hash = hashCredential(credential);
  return kind === 'user' ? await findUser(pool, hash) : await findServiceToken(pool, hash);
}

async function findUser(pool: Database['pool'], hash: Uint8Array): Promise<Principal | null> {
  const rows = await runStatement<UserRow>(pool, USER_BY_KEY, [hash], 'user_by_key');
  if (!rows[0]) return null;
  const memberships = rows.flatMap((row) =>
    row.account_id === null
      ? []
      : [{ account: accountOf(row), license: row.license, permissionSets: row.permission_sets }],
  );
  return { kind: 'user', userId: Number(rows[0].user_id), memberships };
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
