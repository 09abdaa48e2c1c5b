import { secondsTimestamp } from '@runhook/contract';
import { type PermissionSet, permissionSetsOf } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_TOKENS } from '../http/endpoint.ts';
import { pageExtra } from '../http/envelope.ts';
import { QueryReader } from '../http/query-parameters.ts';

/** A service token as the API returns it, without its secret. Times are ISO 8601 UTC in seconds with `Z`. */
export interface TokenView {
  id: number;
  name: string;
  permission_sets: PermissionSet[];
  created_at: string;
  /** Null if the token does not expire. */
  expires_at: string | null;
  /** Up to about a minute late; null if the token was never used. */
  last_used_at: string | null;
  /** Null if the token was not revoked. */
  revoked_at: string | null;
}

/** Lists the service tokens of an account (docs/contract.md#identity), newest first. */
export function tokensEndpoint({ prisma }: { prisma: PrismaClient }): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/tokens',
    access: READ_TOKENS,
    async handle({ account, query }) {
      const reader = new QueryReader(query);
      const page = reader.page();
      reader.check();
      const where = { accountId: BigInt(account.id) };
      const [rows, totalCount] = await Promise.all([
        prisma.serviceToken.findMany({
          where,
          omit: { tokenHash: true },
          orderBy: { id: 'desc' },
          take: page.limit,
          skip: page.offset,
        }),
        prisma.serviceToken.count({ where }),
      ]);
      return { code: 200, data: rows.map(tokenView), extra: pageExtra(page, totalCount, rows.length) };
    },
  };
}

function tokenView(row: Omit<Prisma.ServiceTokenModel, 'tokenHash'>): TokenView {
  return {
    id: Number(row.id),
    name: row.name,
    permission_sets: permissionSetsOf(row),
    created_at: secondsTimestamp(row.createdAt),
    expires_at: row.expiresAt && secondsTimestamp(row.expiresAt),
    last_used_at: row.lastUsedAt && secondsTimestamp(row.lastUsedAt),
    revoked_at: row.revokedAt && secondsTimestamp(row.revokedAt),
  };
}
