import { queryOptions } from '@tanstack/react-query';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import type { Session } from '../api/types.ts';

export const SESSION_KEY = ['session'] as const;

/** Who is signed in; null when nobody is. */
export const sessionQuery = queryOptions({
  queryKey: SESSION_KEY,
  staleTime: 60_000,
  queryFn: async ({ signal }): Promise<Session | null> => {
    try {
      return (await request('get', '/api/v3/session', { signal })).data;
    } catch (error) {
      if (error instanceof ApiError && error.code === 401) return null;
      throw error;
    }
  },
});
