import { createContext, useContext } from 'react';
import type { Account, Session } from '../api/types.ts';

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
