import { Alert, Button, Stack, Text, Title } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Link, useRouteError } from 'react-router';
import { usePageTitle } from '../components/page.tsx';

const REASONS = {
  page: 'There is no page at this address.',
  account: 'There is no such account, or you are not a member of it.',
  webhook: 'There is no such webhook in this account. It may have been deleted.',
  run: 'There is no such run in this account. Runs are stored for a year unless the operator has configured another period.',
  delivery: 'There is no such delivery. Deliveries are stored for a limited number of days.',
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
        You are not a member of an account yet
      </Title>
      <Text>
        Ask an administrator to add you to an account. Your own API key is under Profile, API Access.
      </Text>
    </Stack>
  );
}

/** Errors of browsers and of the bundler for a chunk that cannot be loaded, as after the installation of a new version. */
const CHUNK_LOAD_ERROR =
  /dynamically imported module|Importing a module script failed|Unable to preload CSS/i;
const RELOADED_AT_KEY = 'runhook-reloaded-at';
/** Limits automatic reloads: a page that fails again within this time is not reloaded. */
const RELOAD_INTERVAL_MS = 30_000;

/** Reloads the page, which loads the new version; returns false if it was reloaded recently, or has no storage. */
function reloadOnce(): boolean {
  try {
    if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT_KEY)) < RELOAD_INTERVAL_MS) return false;
    sessionStorage.setItem(RELOADED_AT_KEY, String(Date.now()));
  } catch {
    return false;
  }
  location.reload();
  return true;
}

/** Error page of a route. If the chunk of the route cannot be loaded, it reloads the page once. */
export function PageErrorBoundary() {
  const error = useRouteError();
  const isChunkMissing = error instanceof Error && CHUNK_LOAD_ERROR.test(error.message);
  const [isReloading, setReloading] = useState(isChunkMissing);
  useEffect(() => {
    if (isChunkMissing) setReloading(reloadOnce());
  }, [isChunkMissing]);
  if (isReloading) return <Text p="md">Loading the new version …</Text>;
  return (
    <Stack align="flex-start" p="md">
      <Alert color="red" role="alert" title="This page could not be shown">
        {error instanceof Error ? error.message : 'An unexpected error occurred.'} Reload the page to try
        again.
      </Alert>
      <Button variant="default" onClick={() => location.reload()}>
        Reload
      </Button>
    </Stack>
  );
}
