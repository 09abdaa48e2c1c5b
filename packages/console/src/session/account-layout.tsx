import { useEffect } from 'react';
import { Outlet, useParams } from 'react-router';
import { NotFoundPage } from '../shell/not-found-page.tsx';
import { UnavailablePage } from '../webhooks/unavailable-page.tsx';
import { webhooksRefusal } from '../words/webhooks.ts';
import { rememberAccountId } from './remembered-account.ts';
import { AccountContext, useSession } from './session-context.ts';

/** The pages of the account that the address names. All of them are about webhooks. */
export function AccountLayout() {
  const { accounts } = useSession();
  const { accountId } = useParams();
  const account = accounts.find(({ id }) => String(id) === accountId);
  useEffect(() => {
    if (account !== undefined) rememberAccountId(account.id);
  }, [account]);
  if (!account) return <NotFoundPage what="account" />;
  const refusal = webhooksRefusal(account);
  // Nothing of one account's page stays for the next account's.
  return (
    <AccountContext key={account.id} value={account}>
      {refusal === null ? <Outlet /> : <UnavailablePage reason={refusal} />}
    </AccountContext>
  );
}
