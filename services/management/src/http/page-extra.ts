import type { Page } from './query-parameters.ts';

/** The envelope's `extra` of a list (spec, section 2.2). */
export function pageExtra(page: Page, totalCount: number, count: number) {
  return {
    pagination: { total_count: totalCount, count },
    filters: { offset: page.offset, limit: page.limit },
  };
}
