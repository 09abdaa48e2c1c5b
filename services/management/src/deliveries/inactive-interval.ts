import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import { SEARCHED_ENTRIES_MAX } from './change-history.ts';

/** Time for which a subscription was inactive; microseconds since the epoch, as digits. */
export interface InactiveInterval {
  since: string;
  /** Undefined while the subscription is inactive. */
  until: string | undefined;
}

export interface InactiveSubscription {
  id: string;
  accountId: bigint;
  active: boolean;
  createdAtMicros: bigint;
}

/** Entries of the audit log after which a subscription may have been active or inactive. */
const SWITCHES: Prisma.AuditEntryWhereInput[] = [
  { action: 'webhook.created' },
  { action: 'webhook.deactivated' },
  { action: 'webhook.changed', details: { path: ['changed'], array_contains: 'active' } },
];

/**
 * Returns the last time for which a subscription was inactive, by the newest entries of the audit log; null if it was always
 * active. Each entry that changes `active` is the opposite of the previous one, and the last one led to the current state.
 */
export async function lastInactiveInterval(
  prisma: Pick<PrismaClient, 'auditEntry'>,
  { id, accountId, active, createdAtMicros }: InactiveSubscription,
): Promise<InactiveInterval | null> {
  const oldest = await prisma.auditEntry.findFirst({
    where: { accountId },
    orderBy: { id: 'desc' },
    skip: SEARCHED_ENTRIES_MAX - 1,
    select: { id: true },
  });
  const entries = await prisma.auditEntry.findMany({
    where: { accountId, id: { gte: oldest?.id ?? 0n }, targetKind: 'webhook', targetId: id, OR: SWITCHES },
    orderBy: { id: 'desc' },
    select: { action: true, createdAtMicros: true },
    take: 2,
  });
  const [last, previous] = entries;
  // Entries are deleted after a year, and older ones than those above are not searched.
  const sinceOf = (entry: typeof last) => String(entry?.createdAtMicros ?? createdAtMicros);
  if (!active) return { since: sinceOf(last), until: undefined };
  if (last === undefined || last.action === 'webhook.created') return null;
  return { since: sinceOf(previous), until: String(last.createdAtMicros) };
}
