import type { DeliveryStatus, StatisticsCounts } from '../../api/types.ts';

/** From the bottom of a bar to its top. */
export const OUTCOMES: readonly DeliveryStatus[] = ['delivered', 'failed', 'pending', 'cancelled'];

export function countOf(counts: StatisticsCounts, outcome: DeliveryStatus): number {
  return counts[`${outcome}_count`];
}

export function totalOf(counts: StatisticsCounts): number {
  return OUTCOMES.reduce((sum, outcome) => sum + countOf(counts, outcome), 0);
}
