import { Center, Loader } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Navigate, Outlet, useLocation } from 'react-router';
import { Problem } from '../components/page.tsx';
import { SIGN_IN_PATH } from '../paths.ts';
import { SessionContext } from './session-context.ts';
import { sessionQuery } from './session-query.ts';

/** Lets its pages be seen by whoever is signed in, and sends everybody else to the sign-in and back. */
export function RequireSession() {
  const session = useQuery(sessionQuery);
  const { pathname, search } = useLocation();
  if (session.isPending) {
    return (
      <Center mih="60vh">
        <Loader aria-label="Loading" />
      </Center>
    );
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
      <Outlet />
    </SessionContext>
  );
}
