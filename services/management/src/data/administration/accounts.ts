import { type Deployment, type Plan, secondsTimestamp } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import type { AccountView } from '../../domain/account-view.ts';

type Pool = Database['pool'];

/** How an operator names an account. */
export type AccountReference = { id: number } | { identifier: string };

type AccountRow = Omit<AccountView, 'id' | 'created_at'> & { id: string; created_at: Date };

const COLUMNS = 'id, identifier, name, plan, deployment, created_at';

const SELECT_ONE = `SELECT ${COLUMNS} FROM accounts WHERE id = $1 OR identifier = $2`;

export async function findAccount(pool: Pool, reference: AccountReference): Promise<AccountView | null> {
  const values = 'id' in reference ? [reference.id, null] : [null, reference.identifier];
  const [row] = await runStatement<AccountRow>(pool, SELECT_ONE, values);
  return row ? accountView(row) : null;
}

const SELECT_LIST = `
  SELECT ${COLUMNS} FROM accounts
  WHERE ($1::text IS NULL OR strpos(lower(name), lower($1)) > 0)
    AND ($2::text IS NULL OR plan = $2) AND ($3::text IS NULL OR deployment = $3)
  ORDER BY accounts.id`;

/** Oldest first. @param filter `name` is a part of it, in any case */
export async function listAccounts(
  pool: Pool,
  filter: { name?: string; plan?: Plan; deployment?: Deployment },
): Promise<AccountView[]> {
  const values = [filter.name ?? null, filter.plan ?? null, filter.deployment ?? null];
  return (await runStatement<AccountRow>(pool, SELECT_LIST, values)).map(accountView);
}

const UPDATE = `
  UPDATE accounts SET name = COALESCE($2, name), plan = COALESCE($3, plan), deployment = COALESCE($4, deployment)
  WHERE id = $1 RETURNING ${COLUMNS}`;

/** What is omitted stays. Null when the account is gone. */
export async function updateAccount(
  pool: Pool,
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
