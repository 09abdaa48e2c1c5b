import type { DeliveryStatus, Statistics, StatisticsCounts } from '../../api/types.ts';
import { formatDuration } from '../../wording/time.ts';

/** Order of the slices of a bar, from bottom to top. */
export const OUTCOMES: readonly DeliveryStatus[] = ['delivered', 'failed', 'pending', 'cancelled'];

/** The counts by outcome, which several response types share. */
type OutcomeCounts = Pick<StatisticsCounts, `${DeliveryStatus}_count`>;

export function countOf(counts: OutcomeCounts, outcome: DeliveryStatus): number {
  return counts[`${outcome}_count`];
}

export function totalOf(counts: OutcomeCounts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + countOf(counts, outcome), 0);
}

const numberFormat = new Intl.NumberFormat();
const percentFormat = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** Selectable periods, by their number of hours. */
export const PERIODS = { 24: '24 hours', 168: '7 days' } as const;
export type PeriodHours = keyof typeof PERIODS;
export const PERIOD_DEFAULT = 24;

/** "1,204 deliveries in the last 24 hours: 1,190 delivered (98.8%), 14 failed. Half of …" */
export function describeTotals({ totals }: Pick<Statistics, 'totals'>, hours: PeriodHours): string {
  const total = totalOf(totals);
  const period = `the last ${PERIODS[hours]}`;
  if (total === 0) return `No deliveries in ${period}.`;
  const parts = OUTCOMES.filter((outcome) => countOf(totals, outcome) > 0).map((outcome) => {
    const count = countOf(totals, outcome);
    const share = outcome === 'delivered' ? ` (${formatShare(count, total)})` : '';
    return `${numberFormat.format(count)} ${outcome}${share}`;
  });
  const noun = total === 1 ? 'delivery' : 'deliveries';
  return `${numberFormat.format(total)} ${noun} in ${period}: ${parts.join(', ')}.${describeLatency(totals)}`;
}

/** Returns "100%" only if all are counted, and "0%" only if none is. */
export function formatShare(count: number, total: number): string {
  const rounded = Math.round((count / total) * 1000) / 1000;
  if (count < total && rounded === 1) return `over ${percentFormat.format(0.999)}`;
  if (count > 0 && rounded === 0) return `under ${percentFormat.format(0.001)}`;
  return percentFormat.format(rounded);
}

function describeLatency({ p50_ms, p95_ms }: StatisticsCounts): string {
  if (p50_ms === null || p95_ms === null) return '';
  return ` Half of the responses took up to ${formatDuration(p50_ms)}, 95 % up to ${formatDuration(p95_ms)}.`;
}

/** Describes the counts of one hour, for screen readers and the tooltip. */
export function formatHourCounts(counts: OutcomeCounts): string {
  const parts = OUTCOMES.filter((outcome) => countOf(counts, outcome) > 0).map(
    (outcome) => `${numberFormat.format(countOf(counts, outcome))} ${outcome}`,
  );
  return parts.length === 0 ? 'no deliveries' : parts.join(', ');
}

export function formatHourLatency({ p50_ms, p95_ms }: StatisticsCounts): string {
  if (p50_ms === null || p95_ms === null) return 'no responses';
  return `p50 ${formatDuration(p50_ms)}, p95 ${formatDuration(p95_ms)}`;
}

const hourFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  hour: '2-digit',
  minute: '2-digit',
});
const HOUR_MS = 3_600_000;

function startMsOf(hourStart: string): number {
  return Math.floor(Number(hourStart) / 1_000);
}

/** "14:00", in the user's time zone. @param hourStart microseconds since the epoch, as digits */
export function formatHour(hourStart: string): string {
  return hourFormat.format(startMsOf(hourStart));
}

/** "Fri 14:00", in the user's time zone. */
export function formatDayAndHour(hourStart: string): string {
  return dayFormat.format(startMsOf(hourStart));
}

/** "Fri 14:00 to 15:00", in the user's time zone. */
export function formatHourSpan(hourStart: string): string {
  const startMs = startMsOf(hourStart);
  return `${dayFormat.format(startMs)} to ${hourFormat.format(startMs + HOUR_MS)}`;
}
