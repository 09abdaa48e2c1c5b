import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Navigate, Outlet, useLocation, useParams } from 'react-router';
import { InPieces, Problem } from '../components/page.tsx';
import { ServiceNotice } from '../incidents/service-notice.tsx';
import { SIGN_IN_PATH, webhooksPath } from '../paths.ts';
import { NoAccountPage, NotFoundPage } from '../shell/dead-ends.tsx';
import { UnavailablePage } from '../webhooks/empty-list.tsx';
import { webhooksRefusal } from '../words/webhooks.ts';
import {
  AccountContext,
  rememberAccountId,
  rememberedAccountId,
  SessionContext,
  sessionQuery,
  useSession,
} from './session.ts';

const LOADING = (
  <Center mih="60vh">
    <Loader aria-label="Loading" />
  </Center>
);

/** Lets its pages be seen by whoever is signed in, and sends everybody else to the sign-in and back. */
export function RequireSession() {
  const session = useQuery(sessionQuery);
  const { pathname, search } = useLocation();
  if (session.isPending) {
    return LOADING;
  }
  // One that is known stays when asking again fails: the page says itself what it cannot load.
  if (session.isError && session.data === undefined) {
    return (
      <Center component="main" mih="60vh" p="md">
        <Problem
          title="Runhook cannot be reached"
          error={session.error}
          onRetry={() => void session.refetch()}
          isRetrying={session.isFetching}
        />
      </Center>
    );
  }
  if (session.data === null || session.data === undefined) {
    const here = pathname + search;
    return (
      <Navigate
        replace
        to={here === '/' ? SIGN_IN_PATH : `${SIGN_IN_PATH}?next=${encodeURIComponent(here)}`}
      />
    );
  }
  return (
    <SessionContext value={session.data}>
      <InPieces meanwhile={LOADING}>
        <Outlet />
      </InPieces>
    </SessionContext>
  );
}

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
      {refusal === null ? (
        <>
          <ServiceNotice accountId={account.id} />
          <Outlet />
        </>
      ) : (
        <UnavailablePage reason={refusal} />
      )}
    </AccountContext>
  );
}

/** The account that was looked at last, else the first. */
export function HomeRedirect() {
  const { accounts } = useSession();
  const remembered = accounts.find(({ id }) => id === rememberedAccountId());
  const account = remembered ?? accounts[0];
  if (!account) return <NoAccountPage />;
  return <Navigate replace to={webhooksPath(account.id)} />;
}
