import { Button, Skeleton, Text, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';
import { describeProblem } from '../api/api-error.ts';
import type { OwnSession } from '../api/types.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Problem, toastProblem, toastSuccess } from '../components/page.tsx';
import { Timestamp } from '../components/state.tsx';
import { Table, TableScroll } from '../components/table.tsx';
import { SIGN_IN_PATH, SIGN_OUT_PATH } from '../paths.ts';
import { beginSession } from '../session/session.ts';
import { endAllSessions, endSession, sessionsQuery } from './sessions.ts';

/** Lists where the user is signed in, and ends sessions. */
export function SessionsSection() {
  const sessions = useQuery(sessionsQuery);
  return (
    <section aria-labelledby="sessions">
      <Title order={2} size="h4" id="sessions" mb="xs">
        Sessions
      </Title>
      <Text size="sm" mb="sm">
        Where you are signed in. End a session that you do not recognize, and change your password.
      </Text>
      {sessions.isPending && <Skeleton h={120} role="status" aria-label="Loading" />}
      {sessions.isError && sessions.data === undefined && (
        <Problem
          title="The sessions could not be loaded"
          error={sessions.error}
          onRetry={() => void sessions.refetch()}
          isRetrying={sessions.isFetching}
        />
      )}
      {sessions.data && <SessionTable sessions={sessions.data} />}
      <SignOutEverywhere />
    </section>
  );
}

function SessionTable({ sessions }: { sessions: readonly OwnSession[] }) {
  return (
    <TableScroll minWidth={620}>
      <Table aria-label="Sessions">
        <thead>
          <tr>
            <th>Browser</th>
            <th>Address</th>
            <th>Signed in</th>
            <th>Last use</th>
            <th>Action</th>
          </tr>
        </thead>
        <tbody>
          {sessions.map((session) => (
            <tr key={session.id}>
              <td>
                {session.browser ?? 'Unknown browser'}
                {session.is_current && (
                  <Text span size="xs" c="dimmed" display="block">
                    this browser
                  </Text>
                )}
              </td>
              <td style={{ overflowWrap: 'anywhere' }}>{session.client_address ?? 'unknown'}</td>
              <td>
                <Timestamp at={session.created_at} />
              </td>
              <td>
                <Timestamp at={session.last_used_at} />
              </td>
              <td>
                <EndButton session={session} />
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </TableScroll>
  );
}

/** Ends another session, or leads to the sign-out for the current one. */
function EndButton({ session }: { session: OwnSession }) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: () => endSession(session.id),
    onSuccess: () => toastSuccess('The session has ended.'),
    onError: (error) => toastProblem('The session was not ended', describeProblem(error)),
    onSettled: () => client.invalidateQueries({ queryKey: sessionsQuery.queryKey }),
  });
  if (session.is_current)
    return (
      <Button
        component={Link}
        to={SIGN_OUT_PATH}
        state={{ isRequested: true }}
        size="compact-sm"
        variant="default"
      >
        Sign out
      </Button>
    );
  return (
    <Button size="compact-sm" variant="default" loading={end.isPending} onClick={() => end.mutate()}>
      End
    </Button>
  );
}

function SignOutEverywhere() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [isAsking, setAsking] = useState(false);

  async function signOut() {
    await endAllSessions();
    await beginSession(client, null);
    await navigate(SIGN_IN_PATH, { replace: true });
  }

  return (
    <>
      <Button color="red" variant="outline" mt="sm" onClick={() => setAsking(true)}>
        Sign out everywhere…
      </Button>
      <ConfirmDialog
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title="Sign out everywhere?"
        confirmLabel="Sign out everywhere"
        isDangerous
        problemTitle="The sessions were not ended"
        onConfirm={signOut}
      >
        <Text size="sm">All your sessions end, with this one. Your API key stays valid.</Text>
      </ConfirmDialog>
    </>
  );
}
