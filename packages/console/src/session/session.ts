import { MutationCache, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { useMatch } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import type { Account, Session } from '../api/types.ts';

const SESSION_KEY = ['session'] as const;

/** The current session; null if no user is signed in. */
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

/**
 * Sets the session (null after a sign-out) and discards all data of the previous user. The query of the session itself
 * remains, because pages observe it.
 */
export async function beginSession(client: QueryClient, session: Session | null): Promise<void> {
  await client.cancelQueries();
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
  client.getMutationCache().clear();
  client.setQueryData(SESSION_KEY, session);
}

/** Whether a query is retried: after no response, or a status of at least 502. */
const isTransient = (error: Error) => error instanceof ApiError && (error.code === 0 || error.code >= 502);

const RETRIES_MAX = 2;

/** Creates the client. A 401 of any query or mutation ends the session, and the sign-in page follows. */
export function createQueryClient(): QueryClient {
  const endSessionOn401 = (error: Error) => {
    if (error instanceof ApiError && error.code === 401) client.setQueryData(SESSION_KEY, null);
  };
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({ onError: endSessionOn401 }),
    mutationCache: new MutationCache({ onError: endSessionOn401 }),
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (failures, error) => failures < RETRIES_MAX && isTransient(error),
      },
    },
  });
  return client;
}

/** Provided by the guard of all pages that require a session. */
export const SessionContext = createContext<Session | null>(null);

/** Provided by the layout of the pages below `/accounts/:accountId`. */
export const AccountContext = createContext<Account | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('useSession must be used in a page that requires a session.');
  return session;
}

/** Returns the account in the URL, with the permissions of the user. */
export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error('useAccount must be used in a page of an account.');
  return account;
}

/** Returns the account in the URL; on pages without one, the account that was shown last, or the first. */
export function useCurrentAccount(): Account | null {
  const { accounts } = useSession();
  const accountId = useMatch('/accounts/:accountId/*')?.params.accountId;
  if (accountId !== undefined) return accounts.find(({ id }) => String(id) === accountId) ?? null;
  return accounts.find(({ id }) => id === readLastAccountId()) ?? accounts[0] ?? null;
}

const LAST_ACCOUNT_KEY = 'runhook-account';

/** Returns the id of the account that this browser showed last, or null. */
export function readLastAccountId(): number | null {
  try {
    const text = localStorage.getItem(LAST_ACCOUNT_KEY);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

/** Stores the id. If the browser has no storage, the first account is shown the next time. */
export function storeLastAccountId(id: number): void {
  try {
    localStorage.setItem(LAST_ACCOUNT_KEY, String(id));
  } catch {}
}
