import { type Database, type License, type PermissionSet, runStatement } from '@runhook/database';

type Pool = Database['pool'];

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

const SELECT_ONE = 'SELECT id, email, name FROM users WHERE id = $1 OR email = $2';

export async function findUser(
  pool: Pool,
  reference: UserReference,
): Promise<{ id: number; email: string; name: string } | null> {
  const values = 'id' in reference ? [reference.id, null] : [null, reference.email];
  const [row] = await runStatement<{ id: string; email: string; name: string }>(pool, SELECT_ONE, values);
  return row ? { ...row, id: Number(row.id) } : null;
}

const SELECT_LIST = `
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
  pool: Pool,
  filter: { email?: string; name?: string; accountId?: number },
): Promise<UserView[]> {
  type Row = Omit<UserView, 'id'> & { id: string };
  const values = [filter.email ?? null, filter.name ?? null, filter.accountId ?? null];
  const rows = await runStatement<Row>(pool, SELECT_LIST, values);
  return rows.map((row) => ({ ...row, id: Number(row.id) }));
}
