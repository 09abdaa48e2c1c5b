import { Alert, Button, Stack } from '@mantine/core';
import { useRouteError } from 'react-router';

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
