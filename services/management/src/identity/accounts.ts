import { type Deployment, type Plan, secondsTimestamp } from '@runhook/contract';
import { type Database, runStatement } from '@runhook/database';
import type { CallerEndpoint } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { QueryReader } from '../http/query-parameters.ts';
import type { Principal } from './principals.ts';

/** The caller's accounts: those that a user is a member of, or the one that a service token belongs to. */
export function accountsEndpoints({ pool }: { pool: Database['pool'] }): CallerEndpoint[] {
  const handle: CallerEndpoint['handle'] = async ({ principal, query }) => {
    const reader = new QueryReader(query);
    const page = reader.page();
    reader.check();
    const accountIds = accountIdsOf(principal);
    const accounts = await listAccounts(pool, accountIds, page);
    return { code: 200, data: accounts, extra: pageExtra(page, accountIds.length, accounts.length) };
  };
  return [
    { method: 'GET', path: '/api/v2/accounts', access: 'caller', handle },
    { method: 'GET', path: '/api/v3/accounts', access: 'caller', handle },
  ];
}

function accountIdsOf(principal: Principal): number[] {
  if (principal.kind === 'service_token') return [principal.account.id];
  return principal.memberships.map(({ account }) => account.id);
}

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

/** An account in the list of the caller's accounts; the id is an integer, the time ISO 8601 UTC in seconds with `Z`. */
export interface AccountView {
  id: number;
  identifier: string;
  name: string;
  plan: Plan;
  deployment: Deployment;
  created_at: string;
}
