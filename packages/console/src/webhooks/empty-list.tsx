import { Alert, Anchor, Button, List, Paper, Stack, Text, Title } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { GuardedLinkButton } from '../components/guarded.tsx';
import { PageHeading } from '../components/page.tsx';
import { newWebhookPath } from '../paths.ts';
import { consoleUrl } from '../served-page.ts';
import { useAccount } from '../session/session.ts';

/** Explains webhooks, and offers to create the first one. */
export function EmptyList({ accountId, denialReason }: { accountId: number; denialReason: string | null }) {
  return (
    <Paper withBorder p="xl">
      <Stack align="flex-start" gap="sm" maw={620}>
        <Title order={2} size="h4">
          {denialReason === null ? 'No webhooks yet' : 'What a webhook does'}
        </Title>
        <Text size="sm">
          A webhook notifies another system about your job runs as they happen, so that it does not have to
          poll. You name an endpoint; Runhook sends it a signed HTTP POST:
        </Text>
        <List size="sm" spacing={4}>
          <List.Item>when a run starts, finishes or fails, as you choose,</List.Item>
          <List.Item>for all jobs of the account, or for some,</List.Item>
          <List.Item>
            again, up to five times, if the endpoint does not return a 2xx within 10 seconds.
          </List.Item>
        </List>
        <Text size="sm">
          Every attempt is logged, and every delivery can be resent. The{' '}
          <Anchor href={consoleUrl('docs')} target="_blank" rel="noreferrer" underline="always" inherit>
            API reference (new tab)
          </Anchor>{' '}
          shows what an event looks like.
        </Text>
        <GuardedLinkButton to={newWebhookPath(accountId)} reason={denialReason}>
          Create your first webhook
        </GuardedLinkButton>
      </Stack>
    </Paper>
  );
}

/**
 * Replaces all pages of an account whose plan or deployment has no webhooks. The API rejects reads of webhooks as well,
 * but not of runs and the audit log.
 */
export function UnavailablePage({ reason }: { reason: string }) {
  const account = useAccount();
  return (
    <>
      <PageHeading title="Webhooks" />
      <Alert
        role="note"
        color="gray"
        icon={<IconLock aria-hidden />}
        title={`Webhooks are not available for ${account.name}`}
        mb="md"
      >
        {reason}
      </Alert>
      <EmptyList accountId={account.id} denialReason={reason} />
    </>
  );
}

interface EmptySearchProps {
  search: string;
  isFailingOnly: boolean;
  labels: readonly string[];
  onClear: () => void;
}

export function EmptySearch({ search, isFailingOnly, labels, onClear }: EmptySearchProps) {
  return (
    <Paper withBorder p="xl">
      <Stack align="flex-start" gap="sm" role="status">
        <Title order={2} size="h4">
          No webhook found
        </Title>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {labels.length > 0
            ? `No webhook matches with the label ${labels.join(' and ')}.`
            : search === ''
              ? 'No webhook is failing.'
              : `No name, endpoint or description${isFailingOnly ? ' of a failing webhook' : ''} contains “${search}”.`}
        </Text>
        <Button variant="default" size="xs" onClick={onClear}>
          {isFailingOnly || labels.length > 0 ? 'Show all webhooks' : 'Clear the search'}
        </Button>
      </Stack>
    </Paper>
  );
}
