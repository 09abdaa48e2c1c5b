import type { Delivery } from './types.ts';

/** Where the API stops counting the deliveries that match. */
export const TOTAL_COUNT_MAX = 1_000_000;

export interface DeliveryPage {
  rows: Delivery[];
  /** At most {@link TOTAL_COUNT_MAX}. */
  totalCount: number;
}
