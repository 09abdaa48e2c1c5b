import type { Database } from '@runhook/database';
import { listAccounts } from '../../data/accounts.ts';
import type { Principal } from '../../domain/principal.ts';
import type { CallerEndpoint } from '../endpoint.ts';
import { pageExtra } from '../page-extra.ts';
import { QueryReader } from '../query-parameters.ts';

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
