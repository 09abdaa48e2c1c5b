import { EVENT_INCLUSIONS, type EventInclusion, parseStored } from '@runhook/database';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';
import type { RecoveryCount, RecoveryCounts } from './count-recovery.ts';
import { DELIVERY_STATUSES, type DeliveryStatus } from './delivery.ts';
import { RECOVERABLE_STATUSES, type RecoverableStatus, type RecoverySelection } from './recovery-request.ts';

export const RECOVERY_STATUSES = ['running', 'done', 'cancelled'] as const;
export type RecoveryStatus = (typeof RECOVERY_STATUSES)[number];

export type RecoveryOutcome = Record<DeliveryStatus, number>;

/** A recovery as the API returns it; times are microseconds since the epoch, as digits. */
export interface RecoveryView {
  id: string;
  subscription_id: string;
  status: RecoveryStatus;
  /** Reason of the cancellation. */
  reason: string | null;
  /** Earliest creation of its deliveries, or recording of its events, inclusive. */
  since: string;
  /** Latest of these times, exclusive. */
  until: string;
  /** Null for a recovery of events. */
  delivery_status: RecoverableStatus | null;
  /** Absent for a recovery of deliveries. */
  include?: EventInclusion;
  /** Absent unless delivered events are sent again. */
  again?: true;
  /** Number of deliveries that matched when it was created. */
  total_count: number;
  /** Present if the count ended before the end of the window, so that there may be more. */
  count_limited?: true;
  /** Number of deliveries that were queued; ends below `total_count` if other calls redelivered some of them. */
  recovered_count: number;
  /** Number of them by current status, without those that were redelivered again since. */
  outcome: RecoveryOutcome;
  created_at: string;
  completed_at: string | null;
}

/** The result of a dry run. */
export interface RecoveryPreview {
  dry_run: true;
  /** Null if none was requested and the webhook was never inactive. */
  since: string | null;
  until: string | null;
  delivery_status: RecoverableStatus | null;
  include?: EventInclusion;
  again?: true;
  total_count: number;
  count_limited: boolean;
  counts: RecoveryCounts;
}

export const RECOVERY_FIELDS = {
  id: true,
  subscriptionId: true,
  status: true,
  reason: true,
  sinceMicros: true,
  untilMicros: true,
  deliveryStatus: true,
  include: true,
  resendDelivered: true,
  totalCount: true,
  countLimited: true,
  recoveredCount: true,
  createdAtMicros: true,
  completedAtMicros: true,
} satisfies Prisma.RecoverySelect;

export type RecoveryRow = Prisma.RecoveryGetPayload<{ select: typeof RECOVERY_FIELDS }>;

export const NO_OUTCOME: RecoveryOutcome = { pending: 0, delivered: 0, failed: 0, cancelled: 0 };

/** Returns the outcomes by recovery. */
export async function readOutcomes(
  prisma: Pick<PrismaClient, 'delivery'>,
  { id: accountId }: { id: number },
  rows: readonly RecoveryRow[],
): Promise<Map<string, RecoveryOutcome>> {
  const counts = await prisma.delivery.groupBy({
    by: ['recoveryId', 'status'],
    where: { accountId: BigInt(accountId), recoveryId: { in: rows.map(({ id }) => id) } },
    _count: true,
  });
  const outcomes = new Map<string, RecoveryOutcome>();
  for (const { recoveryId, status, _count } of counts) {
    const id = recoveryId ?? '';
    outcomes.set(id, {
      ...(outcomes.get(id) ?? NO_OUTCOME),
      [parseStored(DELIVERY_STATUSES, status)]: _count,
    });
  }
  return outcomes;
}

export function recoveryView(row: RecoveryRow, outcome: RecoveryOutcome = NO_OUTCOME): RecoveryView {
  const { deliveryStatus, include, resendDelivered } = row;
  return {
    id: row.id,
    subscription_id: row.subscriptionId,
    status: parseStored(RECOVERY_STATUSES, row.status),
    reason: row.reason,
    since: String(row.sinceMicros),
    until: String(row.untilMicros),
    delivery_status: deliveryStatus === null ? null : parseStored(RECOVERABLE_STATUSES, deliveryStatus),
    ...(include !== null && { include: parseStored(EVENT_INCLUSIONS, include) }),
    ...(resendDelivered && { again: true }),
    total_count: row.totalCount,
    ...(row.countLimited && { count_limited: true }),
    recovered_count: row.recoveredCount,
    outcome,
    created_at: String(row.createdAtMicros),
    completed_at: row.completedAtMicros === null ? null : String(row.completedAtMicros),
  };
}

/** @param window null if the webhook was never inactive */
export function previewView(
  selection: RecoverySelection,
  window: { since: string; until: string } | null,
  { totalCount, counts, isLimited }: RecoveryCount,
): RecoveryPreview {
  return {
    dry_run: true,
    since: window?.since ?? null,
    until: window?.until ?? null,
    delivery_status: selection.status,
    ...(selection.include !== null && { include: selection.include }),
    ...(selection.include !== null && selection.resendDelivered && { again: true }),
    total_count: totalCount,
    count_limited: isLimited,
    counts,
  };
}
