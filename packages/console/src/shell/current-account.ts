import { useMatch } from 'react-router';
import type { Account } from '../api/types.ts';
import { rememberedAccountId } from '../session/remembered-account.ts';
import { useSession } from '../session/session-context.ts';

/** The account of the address; on pages of no account the one that was looked at last, else the first. */
export function useCurrentAccount(): Account | null {
  const { accounts } = useSession();
  const accountId = useMatch('/accounts/:accountId/*')?.params.accountId;
  if (accountId !== undefined) return accounts.find(({ id }) => String(id) === accountId) ?? null;
  return accounts.find(({ id }) => id === rememberedAccountId()) ?? accounts[0] ?? null;
}
