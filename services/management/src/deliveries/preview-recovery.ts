import { type EventFilters, type EventSelection, filterSets } from '@runhook/contract';
import { type Pool, sentEventTypes } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import {
  countDeliveries,
  countEvents,
  NO_COUNTS,
  type RecoveryCount,
  type RecoveryWindow,
  readWindowEnd,
} from './count-recovery.ts';
import { type InactiveSubscription, lastInactiveInterval } from './inactive-interval.ts';
import type { ParsedRecovery, RecoverySelection } from './recovery-request.ts';
import { previewView, type RecoveryPreview } from './recovery-view.ts';

interface SubscriptionRow extends InactiveSubscription {
  eventTypes: string[];
  jobIds: bigint[];
  filters: unknown;
  format: string | null;
}

interface RecoveredSubscription {
  accountId: number;
  subscription: SubscriptionRow;
}

/**
 * Counts what a recovery would send and starts nothing. Without `since`, the window is the last time for which the webhook
 * was inactive; there may be none.
 */
export async function previewRecovery(
  { prisma, pool }: { prisma: PrismaClient; pool: Pool },
  key: RecoveredSubscription,
  { since, until, selection }: ParsedRecovery,
): Promise<RecoveryPreview> {
  const interval = since === null ? await lastInactiveInterval(prisma, key.subscription) : { since, until };
  if (interval === null)
    return previewView(selection, null, { totalCount: 0, counts: NO_COUNTS, isLimited: false });
  const window = { since: interval.since, until: await readWindowEnd(pool, interval.until ?? until) };
  return previewView(selection, window, await countRecovery(pool, key, window, selection));
}

/** Counts what a recovery of the window would send. */
export async function countRecovery(
  pool: Pool,
  { accountId, subscription }: RecoveredSubscription,
  window: RecoveryWindow,
  recovered: RecoverySelection,
): Promise<RecoveryCount> {
  const key = { accountId, subscriptionId: subscription.id };
  if (recovered.include === null) return await countDeliveries(pool, key, window, recovered.status);
  const { include, resendDelivered } = recovered;
  const selection = selectionOf(subscription);
  return await countEvents(pool, { ...key, selection, window, include, resendDelivered });
}

/** Returns the selection as of an active webhook: events are counted before it is switched on. */
function selectionOf({ eventTypes, jobIds, filters, format }: SubscriptionRow): EventSelection {
  return {
    active: true,
    eventTypes: sentEventTypes(eventTypes, format),
    jobIds: new Set(jobIds.map(String)),
    filters: filterSets(filters as EventFilters | null),
  };
}
