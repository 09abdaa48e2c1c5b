import { type Database, type License, type PermissionSet, runStatement } from '@runhook/database';

type Pool = Database['pool'];

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
  pool: Pool,
  { accountId, userId }: MembershipKey,
  fields: { license?: License; permissionSets?: PermissionSet[] },
): Promise<MembershipView & { is_new: boolean }> {
  const values = [accountId, userId, fields.license ?? null, fields.permissionSets ?? null, LICENSE_DEFAULT];
  type Row = Omit<MembershipView, 'account_id' | 'user_id'> & { is_new: boolean };
  const [row] = await runStatement<Row>(pool, UPSERT, values);
  return { account_id: accountId, user_id: userId, ...(row as Row) };
}

/** Whether there was such a membership. */
export async function removeMembership(pool: Pool, { accountId, userId }: MembershipKey): Promise<boolean> {
  const text = 'DELETE FROM memberships WHERE account_id = $1 AND user_id = $2 RETURNING user_id';
  return (await runStatement(pool, text, [accountId, userId])).length > 0;
}
