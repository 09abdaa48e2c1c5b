import { Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { PageHeading, Problem } from '../components/page.tsx';
import { useSession } from '../session/session.ts';
import { ApiKeySection } from './api-key-section.tsx';
import { profileQuery } from './profile-query.ts';

/** Profile, API Access: the user's own key (spec, section 2.4). */
export function Component() {
  const { email } = useSession();
  const profile = useQuery(profileQuery);
  return (
    <>
      <PageHeading
        title="API Access"
        below={
          <>
            The API key of {email}. Whoever has it can do through the API what you can do here, in all your
            accounts.
          </>
        }
      />
      <Stack gap="xl" maw={760}>
        {profile.isPending && (
          <Stack role="status" aria-label="Loading">
            <Skeleton h={42} />
            <Skeleton h={36} w={160} />
            <Skeleton h={130} />
          </Stack>
        )}
        {profile.isError && profile.data === undefined && (
          <Problem
            title="The API key could not be loaded"
            error={profile.error}
            onRetry={() => void profile.refetch()}
            isRetrying={profile.isFetching}
          />
        )}
        {profile.data && <ApiKeySection profile={profile.data} />}
        <Text size="sm" c="dimmed">
          For programs that several people depend on, ask an administrator for a service token: it belongs to
          an account, not to you.
        </Text>
      </Stack>
    </>
  );
}
