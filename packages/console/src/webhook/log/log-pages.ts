import { TOTAL_COUNT_MAX } from '../../api/types.ts';

export const PAGE_SIZE = 25;

/** How far the log can be paged through: the API counts so many and no more. */
export function pagesOf(totalCount: number): number {
  return Math.max(1, Math.ceil(totalCount / PAGE_SIZE));
}

const numberFormat = new Intl.NumberFormat();

export function countWords(count: number): string {
  return count >= TOTAL_COUNT_MAX
    ? `at least ${numberFormat.format(TOTAL_COUNT_MAX)}`
    : numberFormat.format(count);
}

/** "26–50 of 1,234", "1–25 of at least 1,000,000". */
export function extentWords({
  page,
  count,
  totalCount,
}: {
  page: number;
  count: number;
  totalCount: number;
}): string {
  const first = (page - 1) * PAGE_SIZE + 1;
  return `${numberFormat.format(first)}–${numberFormat.format(first + count - 1)} of ${countWords(totalCount)}`;
}

/** A page number that somebody typed, moved to the nearest that there is; null for what is no number. */
export function pageFromText(text: string, totalCount: number): number | null {
  if (!/^\d{1,9}$/.test(text.trim())) return null;
  return Math.min(Math.max(1, Number(text)), pagesOf(totalCount));
}
