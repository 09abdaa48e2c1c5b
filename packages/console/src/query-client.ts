import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { ApiError } from './api/api-error.ts';
import { SESSION_KEY } from './session/session-query.ts';

/** What the API refuses stays refused; only what may pass by itself is asked for again. */
const isPassing = (error: Error) => error instanceof ApiError && (error.code === 0 || error.code >= 502);

const RETRIES_MAX = 2;

/**
 * A call that is refused for want of a session ends the session here, too: the sign-in page follows. A query or
 * mutation whose 401 means something else says `meta: { keepsSession: true }`.
 */
export function createQueryClient(): QueryClient {
  const endSessionOn401 = (error: Error, meta: Record<string, unknown> | undefined) => {
    if (error instanceof ApiError && error.code === 401 && meta?.keepsSession !== true)
      client.setQueryData(SESSION_KEY, null);
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        if (query.queryKey[0] !== SESSION_KEY[0]) endSessionOn401(error, query.meta);
      },
    }),
    mutationCache: new MutationCache({
      onError: (error, _variables, _result, mutation) => endSessionOn401(error, mutation.meta),
    }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (failures, error) => failures < RETRIES_MAX && isPassing(error),
      },
    },
  });
  return client;
}
