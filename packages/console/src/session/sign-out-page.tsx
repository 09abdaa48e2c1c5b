import { Button, Center, Loader, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import { Problem, usePageTitle } from '../components/page.tsx';
import { SIGN_IN_PATH } from '../paths.ts';
import { beginSession } from './session.ts';

/**
 * Ends the session. It is a page, so that leaving for it asks about unsaved changes like any navigation. It asks for
 * confirmation unless the console's menu led here, because a link from elsewhere must not sign the user out.
 */
export function Component() {
  usePageTitle('Sign out');
  const client = useQueryClient();
  const navigate = useNavigate();
  const { state } = useLocation();
  const isRequested = (state as { isRequested?: boolean } | null)?.isRequested === true;
  const [problem, setProblem] = useState<unknown>(null);
  const [isPending, setPending] = useState(isRequested);

  const signOut = useCallback(async () => {
    setPending(true);
    setProblem(null);
    try {
      await endSession();
      await beginSession(client, null);
      await navigate(SIGN_IN_PATH, { replace: true });
    } catch (error) {
      setProblem(error);
      setPending(false);
    }
  }, [client, navigate]);

  const hasStarted = useRef(false);
  useEffect(() => {
    if (!isRequested || hasStarted.current) return;
    hasStarted.current = true;
    void signOut();
  }, [isRequested, signOut]);

  return (
    <Center component="main" mih="100dvh" p="md">
      {isPending ? (
        <Loader aria-label="Signing out" />
      ) : (
        <Stack align="center">
          <Title order={1} size="h3">
            Sign out
          </Title>
          {problem === null ? (
            <>
              <Text>Sign out of the console in this browser?</Text>
              <Button onClick={() => void signOut()}>Sign out</Button>
            </>
          ) : (
            <Problem title="You are still signed in" error={problem} onRetry={() => void signOut()} />
          )}
        </Stack>
      )}
    </Center>
  );
}

async function endSession(): Promise<void> {
  try {
    await request('delete', '/api/v3/session', {});
  } catch (error) {
    // The session has ended already, which is the wanted result.
    if (!(error instanceof ApiError && error.code === 401)) throw error;
  }
}
