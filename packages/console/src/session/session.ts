import { MutationCache, QueryCache, QueryClient, queryOptions } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { useMatch } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import type { Account, Session } from '../api/types.ts';

const SESSION_KEY = ['session'] as const;

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

/**
 * From now on somebody, or with null nobody, is signed in: whatever was loaded for the one before is forgotten. The
 * query of the session itself stays, as pages watch it.
 */
export async function beginSession(client: QueryClient, session: Session | null): Promise<void> {
  await client.cancelQueries();
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
  client.getMutationCache().clear();
  client.setQueryData(SESSION_KEY, session);
}

/** What the API refuses stays refused; only what may pass by itself is asked for again. */
const isPassing = (error: Error) => error instanceof ApiError && (error.code === 0 || error.code >= 502);

const RETRIES_MAX = 2;

/** A query or mutation that is refused for want of a session ends the session here, too: the sign-in page follows. */
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
        retry: (failures, error) => failures < RETRIES_MAX && isPassing(error),
      },
    },
  });
  return client;
}

/** Set by the guard around every page that needs somebody signed in. */
export const SessionContext = createContext<Session | null>(null);

/** Set by the layout of the pages below `/accounts/:accountId`. */
export const AccountContext = createContext<Account | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('useSession is for pages behind the sign-in');
  return session;
}

/** The account that the address names, with what the caller may do in it. */
export function useAccount(): Account {
  const account = useContext(AccountContext);
  if (account === null) throw new Error('useAccount is for pages of an account');
  return account;
}

/** The account of the address; on pages of no account the one that was looked at last, else the first. */
export function useCurrentAccount(): Account | null {
  const { accounts } = useSession();
  const accountId = useMatch('/accounts/:accountId/*')?.params.accountId;
  if (accountId !== undefined) return accounts.find(({ id }) => String(id) === accountId) ?? null;
  return accounts.find(({ id }) => id === rememberedAccountId()) ?? accounts[0] ?? null;
}

const REMEMBERED = 'runhook-account';

/** The account that this browser looked at last, or null. */
export function rememberedAccountId(): number | null {
  try {
    const text = localStorage.getItem(REMEMBERED);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

/** A browser that keeps nothing starts with the first account the next time. */
export function rememberAccountId(id: number): void {
  try {
    localStorage.setItem(REMEMBERED, String(id));
  } catch {}
}
