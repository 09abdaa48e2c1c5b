import type { QuarantineKind, RecordWrites } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';

/** State of the service for an account (docs/contract.md#service-state); times are microseconds since the epoch. */
export interface ServiceStateView {
  record_writable: boolean;
  quarantined_count: number;
  quarantined: { kind: QuarantineKind; id: string; reason: string; created_at: string }[];
  /** Ranges in CIDR notation; absent if the operator has not configured them. */
  source_addresses?: string[];
  /** Address of the console in messages of formats; absent if the operator has not configured it. */
  public_url?: string;
}

export const ITEMS_MAX = 20;

export interface ServiceStateDependencies {
  prisma: PrismaClient;
  writes: Pick<RecordWrites, 'state'>;
  /** Ranges from which requests reach endpoints; empty if they are not configured. */
  sourceAddresses: string[];
  /** Setting `PUBLIC_URL`; null if it is not set. */
  consoleUrl: string | null;
}

/**
 * Returns whether reports can be recorded, the number and the newest of the account's quarantined items, the source
 * addresses of requests, and the address in messages.
 */
export function serviceStateEndpoint({
  prisma,
  writes,
  sourceAddresses,
  consoleUrl,
}: ServiceStateDependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/service-state',
    access: READ_WEBHOOKS,
    async handle({ account }) {
      const where = { accountId: BigInt(account.id) };
      const [rows, quarantinedCount] = await Promise.all([
        prisma.quarantinedItem.findMany({ where, orderBy: { createdAt: 'desc' }, take: ITEMS_MAX }),
        prisma.quarantinedItem.count({ where }),
      ]);
      const data: ServiceStateView = {
        record_writable: writes.state === 'writable',
        quarantined_count: quarantinedCount,
        quarantined: rows.map(({ kind, key, reason, createdAt }) => ({
          kind: kind as QuarantineKind,
          id: key,
          reason,
          created_at: String(createdAt.getTime() * 1_000),
        })),
        ...(sourceAddresses.length > 0 && { source_addresses: sourceAddresses }),
        ...(consoleUrl !== null && { public_url: consoleUrl }),
      };
      return { code: 200, data };
    },
  };
}
