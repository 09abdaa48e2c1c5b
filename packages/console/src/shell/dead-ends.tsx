import { Alert, Button, Stack, Text, Title } from '@mantine/core';
import { Link, useRouteError } from 'react-router';
import { usePageTitle } from '../components/page.tsx';

const REASONS = {
  page: 'There is no page at this address.',
  account: 'There is no such account, or you are not a member of it.',
  webhook: 'There is no such webhook in this account. It may have been deleted.',
  delivery: 'There is no such delivery. Deliveries are kept for a limited number of days.',
};

export function NotFoundPage({ what }: { what: keyof typeof REASONS }) {
  usePageTitle('Not found');
  return (
    <Stack align="flex-start" py="xl">
      <Title order={1} size="h2">
        Not found
      </Title>
      <Text>{REASONS[what]}</Text>
      <Button component={Link} to="/" variant="default">
        Back to your webhooks
      </Button>
    </Stack>
  );
}

export function NoAccountPage() {
  usePageTitle('No account');
  return (
    <Stack align="flex-start" py="xl">
      <Title order={1} size="h2">
        You are in no account yet
      </Title>
      <Text>
        Ask an administrator to add you to an account. Your own API key is under Profile, API Access.
      </Text>
    </Stack>
  );
}

/** What a page shows that broke, or whose chunk is gone because a newer version was installed meanwhile. */
export function PageErrorBoundary() {
  const error = useRouteError();
  return (
    <Stack align="flex-start" p="md">
      <Alert color="red" role="alert" title="This page could not be shown">
        {error instanceof Error ? error.message : 'Something unexpected happened.'} Loading it again usually
        helps.
      </Alert>
      <Button variant="default" onClick={() => location.reload()}>
        Load again
      </Button>
    </Stack>
  );
}
