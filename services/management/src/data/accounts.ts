import { secondsTimestamp } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import type { AccountView } from '../domain/account-view.ts';

type AccountRow = Omit<AccountView, 'id' | 'created_at'> & { id: string; created_at: Date };

/** A page of those of the accounts that exist, oldest first: what a client took as its first account stays the first. */
export async function listAccounts(
  pool: Database['pool'],
  accountIds: readonly number[],
  page: { limit: number; offset: number },
): Promise<AccountView[]> {
  const rows = await runStatement<AccountRow>(
    pool,
    `SELECT id, identifier, name, plan, deployment, created_at FROM accounts
     WHERE id = ANY($1::bigint[]) ORDER BY id LIMIT $2 OFFSET $3`,
    [accountIds, page.limit, page.offset],
  );
  return rows.map((row) => ({ ...row, id: Number(row.id), created_at: secondsTimestamp(row.created_at) }));
}
