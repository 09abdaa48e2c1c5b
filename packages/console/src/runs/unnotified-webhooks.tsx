import { Anchor, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { unnotifiedQuery } from '../api/unnotified.ts';
import { Problem } from '../components/page.tsx';
import { webhookPath } from '../paths.ts';
import { formatUnnotifiedEvents } from '../wording/runs.ts';

interface UnnotifiedWebhooksProps {
  accountId: number;
  runId: number;
}

/** Why webhooks did not hear about a run: a sentence for each. It is collapsed, and loaded when it is opened. */
export function UnnotifiedWebhooks(props: UnnotifiedWebhooksProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Paper component="section" withBorder p="md" aria-labelledby="unnotified">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary style={{ cursor: 'pointer' }}>
          <Title order={2} size="h4" id="unnotified" display="inline">
            Why did a webhook not hear about this run?
          </Title>
        </summary>
        {isOpen && <Explanations {...props} />}
      </details>
    </Paper>
  );
}

function Explanations({ accountId, runId }: UnnotifiedWebhooksProps) {
  const query = useQuery(unnotifiedQuery(accountId, runId));
  if (query.isPending) return <Skeleton height={80} mt="sm" role="status" aria-label="Loading the reasons" />;
  if (query.data === undefined)
    return (
      <Problem
        title="The reasons could not be loaded"
        error={query.error}
        onRetry={() => void query.refetch()}
      />
    );
  const { webhooks, totalCount } = query.data;
  if (webhooks.length === 0)
    return (
      <Text size="sm" mt="sm">
        No webhook missed an event of this run that was matched with webhooks.
      </Text>
    );
  return (
    <Stack gap="xs" mt="sm">
      <Stack
        gap="xs"
        component="ul"
        p={0}
        m={0}
        style={{ listStyle: 'none' }}
        aria-label="Webhooks not notified"
      >
        {webhooks.map((webhook) => (
          <li key={webhook.subscription_id}>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              <Anchor
                component={Link}
                to={webhookPath(accountId, webhook.subscription_id)}
                underline="always"
                inherit
              >
                {webhook.webhook_name}
              </Anchor>
              {formatUnnotifiedEvents(webhook)}: {webhook.message}
            </Text>
          </li>
        ))}
      </Stack>
      {totalCount > webhooks.length && (
        <Text size="sm">
          The first {webhooks.length} of {totalCount.toLocaleString()} webhooks are shown.
        </Text>
      )}
    </Stack>
  );
}
