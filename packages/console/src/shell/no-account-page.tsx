import { Stack, Text, Title } from '@mantine/core';
import { usePageTitle } from '../components/page.tsx';

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
