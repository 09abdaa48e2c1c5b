import { type Database, type PermissionSet, runStatement } from '@runhook/database';

type Pool = Database['pool'];

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

const COLUMNS = 'id, account_id, name, permission_sets, created_at, expires_at, revoked_at';

export async function findServiceToken(pool: Pool, id: number): Promise<ServiceTokenView | null> {
  const text = `SELECT ${COLUMNS} FROM service_tokens WHERE id = $1`;
  const [row] = await runStatement<TokenRow>(pool, text, [id]);
  return row ? tokenView(row) : null;
}

const SELECT_LIST = `
  SELECT ${COLUMNS} FROM service_tokens
  WHERE ($1::bigint IS NULL OR account_id = $1) AND ($2::text IS NULL OR strpos(lower(name), lower($2)) > 0)
    AND ($3::text[] IS NULL OR permission_sets && $3)
  ORDER BY service_tokens.id`;

/** Oldest first. @param filter `name` is a part of it, in any case; of the permission sets one must be held */
export async function listServiceTokens(
  pool: Pool,
  filter: { accountId?: number; name?: string; permissionSets?: PermissionSet[] },
): Promise<ServiceTokenView[]> {
  const values = [filter.accountId ?? null, filter.name ?? null, filter.permissionSets ?? null];
  return (await runStatement<TokenRow>(pool, SELECT_LIST, values)).map(tokenView);
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
  pool: Pool,
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
