import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { Navigate, Outlet, useLocation, useParams } from 'react-router';
import { DeferredRender, Problem } from '../components/page.tsx';
import { ServiceNotice } from '../incidents/service-notice.tsx';
import { SIGN_IN_PATH, webhooksPath } from '../paths.ts';
import { NoAccountPage, NotFoundPage } from '../shell/error-pages.tsx';
import { UnavailablePage } from '../webhooks/empty-list.tsx';
import { webhooksDenialReason } from '../wording/webhooks.ts';
import {
  AccountContext,
  readLastAccountId,
  SessionContext,
  sessionQuery,
  storeLastAccountId,
  useSession,
} from './session.ts';

const LOADING = (
  <Center mih="60vh">
    <Loader aria-label="Loading" />
  </Center>
);

/** Renders its pages for a signed-in user, and redirects others to the sign-in page and back. */
export function RequireSession() {
  const session = useQuery(sessionQuery);
  const { pathname, search } = useLocation();
  if (session.isPending) {
    return LOADING;
  }
  // A cached session stays valid if refreshing it fails: each page reports what it cannot load.
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
    const currentPath = pathname + search;
    return (
      <Navigate
        replace
        to={currentPath === '/' ? SIGN_IN_PATH : `${SIGN_IN_PATH}?next=${encodeURIComponent(currentPath)}`}
      />
    );
  }
  return (
    <SessionContext value={session.data}>
      <DeferredRender fallback={LOADING}>
        <Outlet />
      </DeferredRender>
    </SessionContext>
  );
}

/** Layout of the pages of the account in the URL, which a notice replaces if webhooks are not available to it. */
export function AccountLayout() {
  const { accounts } = useSession();
  const { accountId } = useParams();
  const account = accounts.find(({ id }) => String(id) === accountId);
  useEffect(() => {
    if (account !== undefined) storeLastAccountId(account.id);
  }, [account]);
  if (!account) return <NotFoundPage what="account" />;
  const denialReason = webhooksDenialReason(account);
  // The key discards the state of the previous account's page.
  return (
    <AccountContext key={account.id} value={account}>
      {denialReason === null ? (
        <>
          <ServiceNotice accountId={account.id} />
          <Outlet />
        </>
      ) : (
        <UnavailablePage reason={denialReason} />
      )}
    </AccountContext>
  );
}

/** Redirects to the webhooks of the account that was shown last, or of the first one. */
export function HomeRedirect() {
  const { accounts } = useSession();
  const lastAccount = accounts.find(({ id }) => id === readLastAccountId());
  const account = lastAccount ?? accounts[0];
  if (!account) return <NoAccountPage />;
  return <Navigate replace to={webhooksPath(account.id)} />;
}
