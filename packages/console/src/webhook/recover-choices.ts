import type { RecoveryPreview, RecoveryRequest } from '../api/types.ts';
import { formatShortLocalTime, parseTime } from '../wording/time.ts';

/** Selections of a recovery, with the label of each choice. */
export const RECOVERY_CHOICES = {
  all: 'All that did not arrive: failed, cancelled or never sent',
  failed: 'Failed: all attempts failed',
  unsent: 'Never sent: the webhook was off, not created yet, or did not match',
  cancelled: 'Cancelled: the webhook was switched off when they were due',
} as const;

export type RecoveryChoice = keyof typeof RECOVERY_CHOICES;

/** Returns the fields of the request. @param resendsDelivered whether `all` includes what was delivered */
export function toSelection(
  choice: RecoveryChoice,
  resendsDelivered: boolean,
): Omit<RecoveryRequest, 'since' | 'until'> {
  if (choice === 'cancelled') return { status: choice };
  return { include: choice, ...(choice === 'all' && resendsDelivered && { again: true }) };
}

const NOUNS: Readonly<Record<RecoveryChoice, readonly [one: string, many: string]>> = {
  all: ['event', 'events'],
  failed: ['failed delivery', 'failed deliveries'],
  unsent: ['unsent event', 'unsent events'],
  cancelled: ['cancelled delivery', 'cancelled deliveries'],
};

/** "126 events of 31 Jan 2026, 14:02 to 31 Jan 2026, 15:30 will be sent: 120 never sent, 6 failed." */
export function describeCount(
  preview: Pick<RecoveryPreview, 'total_count' | 'count_limited' | 'counts' | 'since' | 'until'> | undefined,
  choice: RecoveryChoice,
  resendsDelivered: boolean,
  problem: string | null,
): string {
  if (problem !== null)
    return `What would be sent could not be counted, but it can be sent without the count. ${problem}`;
  if (preview === undefined) return 'Counting…';
  const { total_count: total, count_limited: isLimited, since, until } = preview;
  const [one, many] = NOUNS[choice];
  if (total === 0)
    return isLimited
      ? `No ${many} so far, but the count ended before the end of this time range. The recovery sends the others.`
      : `No ${many} in this time range. There is nothing to send.`;
  const count = `${isLimited ? 'At least ' : ''}${total.toLocaleString()} ${total === 1 ? one : many}`;
  const range = since === null || until === null ? '' : ` of ${formatTime(since)} to ${formatTime(until)}`;
  const { counts } = preview;
  const sent = resendsDelivered ? counts : { ...counts, delivered: 0 };
  const parts = choice === 'all' ? listCounts(sent) : '';
  return `${count}${range} will be sent${parts === '' ? '' : `: ${parts}`}.`;
}

/**
 * Whether a recovery can be started: also if the count failed or ended early, because the recovery reads all of the range.
 * @param preview undefined while it is being counted
 */
export function canStart(
  preview: Pick<RecoveryPreview, 'total_count' | 'count_limited'> | undefined,
  hasCountFailed: boolean,
): boolean {
  return hasCountFailed || (preview !== undefined && (preview.total_count > 0 || preview.count_limited));
}

function listCounts({ unsent, failed, cancelled, delivered }: RecoveryPreview['counts']): string {
  return Object.entries({ 'never sent': unsent, failed, cancelled, 'already delivered': delivered })
    .filter(([, count]) => count > 0)
    .map(([label, count]) => `${count.toLocaleString()} ${label}`)
    .join(', ');
}

function formatTime(micros: string): string {
  const date = parseTime(micros);
  return date === null ? micros : formatShortLocalTime(date);
}
