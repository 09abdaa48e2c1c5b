import { Navigate } from 'react-router';
import { webhooksPath } from '../paths.ts';
import { NoAccountPage } from '../shell/no-account-page.tsx';
import { rememberedAccountId } from './remembered-account.ts';
import { useSession } from './session-context.ts';

/** The account that was looked at last, else the first. */
export function HomeRedirect() {
  const { accounts } = useSession();
  const remembered = accounts.find(({ id }) => id === rememberedAccountId());
  const account = remembered ?? accounts[0];
  if (!account) return <NoAccountPage />;
  return <Navigate replace to={webhooksPath(account.id)} />;
}
