import { queryOptions } from '@tanstack/react-query';
import { request } from '../api/request.ts';

/** Holds the key, so it is forgotten with the page. */
export const profileQuery = queryOptions({
  queryKey: ['profile'],
  gcTime: 0,
  staleTime: 0,
  queryFn: async ({ signal }) => (await request('get', '/api/v3/profile', { signal })).data,
});
