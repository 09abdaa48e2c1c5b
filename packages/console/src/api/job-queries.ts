import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { jobsApi } from './account-path.ts';
import { request } from './request.ts';
import type { Job, Page } from './types.ts';

/** As many as one call takes. */
const IDS_MAX = 100;
export const JOBS_SHOWN_MAX = 50;

/** The first jobs whose name has the text, or whose id begins with it; of all jobs when it is empty. */
export function jobSearchQuery(accountId: number, search: string) {
  return queryOptions({
    queryKey: ['accounts', accountId, 'jobs', 'search', search],
    queryFn: ({ signal }) =>
      request<Job[], Page>(jobsApi(accountId), { query: { search, limit: JOBS_SHOWN_MAX }, signal }),
    placeholderData: keepPreviousData,
  });
}

/** Jobs by id; those that are no more are left out. Asked for in hundreds. */
export function jobsByIdQuery(accountId: number, ids: readonly string[]) {
  const sorted = [...new Set(ids)].sort();
  return queryOptions({
    queryKey: ['accounts', accountId, 'jobs', 'ids', sorted],
    enabled: sorted.length > 0,
    staleTime: 60_000,
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const jobs: Job[] = [];
      for (let first = 0; first < sorted.length; first += IDS_MAX) {
        const ids = sorted.slice(first, first + IDS_MAX).join(',');
        const query = { ids, limit: IDS_MAX };
        jobs.push(...(await request<Job[], Page>(jobsApi(accountId), { query, signal })).data);
      }
      return jobs;
    },
  });
}
