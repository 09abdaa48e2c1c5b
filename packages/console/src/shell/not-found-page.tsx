import { Button, Stack, Text, Title } from '@mantine/core';
import { Link } from 'react-router';
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
