import { DEPLOYMENTS, type Deployment, PLANS, type Plan, secondsTimestamp } from '@runhook/contract';
import { parseStored } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, type CallerEndpoint, READ_ACCOUNT } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { QueryReader } from '../http/query-parameters.ts';
import type { Principal } from './principals.ts';

/** Lists the accounts of a user or the single account of a service token, and returns one account. */
export function accountsEndpoints({
  prisma,
}: {
  prisma: PrismaClient;
}): (CallerEndpoint | AccountEndpoint)[] {
  const handle: CallerEndpoint['handle'] = async ({ principal, query }) => {
    const reader = new QueryReader(query);
    const page = reader.page();
    reader.check();
    const accountIds = accountIdsOf(principal);
    const accounts = await listAccounts(prisma, accountIds, page);
    return { code: 200, data: accounts, extra: pageExtra(page, accountIds.length, accounts.length) };
  };
  const get: Extract<AccountEndpoint, { method: 'GET' }>['handle'] = async ({ account: { id } }) => {
    const [account] = await listAccounts(prisma, [id], { limit: 1, offset: 0 });
    if (account === undefined) throw new NotFoundError();
    return { code: 200, data: account };
  };
  return (['/api/v2/accounts', '/api/v3/accounts'] as const).flatMap((path) => [
    { method: 'GET', path, access: 'caller', handle },
    { method: 'GET', path: `${path}/:account_id`, access: READ_ACCOUNT, handle: get },
  ]);
}

function accountIdsOf(principal: Principal): number[] {
  if (principal.kind === 'service_token') return [principal.account.id];
  return principal.memberships.map(({ account }) => account.id);
}

/** Returns a page of the existing accounts, oldest first, so that the first account of a client stays the first. */
export async function listAccounts(
  prisma: Prisma.TransactionClient,
  accountIds: readonly number[],
  page: { limit: number; offset: number },
): Promise<AccountView[]> {
  const accounts = await prisma.account.findMany({
    where: { id: { in: accountIds.map(BigInt) } },
    orderBy: { id: 'asc' },
    take: page.limit,
    skip: page.offset,
  });
  return accounts.map(accountView);
}

/** An account as the API returns it. The id is an integer; the time is ISO 8601 UTC in seconds with `Z`. */
export interface AccountView {
  id: number;
  identifier: string;
  name: string;
  plan: Plan;
  deployment: Deployment;
  created_at: string;
}

export function accountView(row: Prisma.AccountModel): AccountView {
  return {
    id: Number(row.id),
    identifier: row.identifier,
    name: row.name,
    plan: parseStored(PLANS, row.plan),
    deployment: parseStored(DEPLOYMENTS, row.deployment),
    created_at: secondsTimestamp(row.createdAt),
  };
}
