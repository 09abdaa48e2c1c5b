import { Anchor, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { subscriptionQuery } from '../api/subscriptions.ts';
import { Problem } from '../components/page.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';

/** Loads the webhook in the URL, for a page that does not follow its changes. */
export function useCurrentWebhook() {
  const account = useAccount();
  const { webhookId = '' } = useParams();
  const webhook = useQuery({
    ...subscriptionQuery({ accountId: account.id, webhookId }),
    refetchOnWindowFocus: false,
  });
  const isNotFound = webhook.error instanceof ApiError && webhook.error.code === 404;
  return { account, webhookId, webhook, isNotFound };
}

/** Error that is shown if the webhook cannot be loaded. */
export function WebhookProblem({ webhook }: Pick<ReturnType<typeof useCurrentWebhook>, 'webhook'>) {
  if (!webhook.isError || webhook.data !== undefined) return null;
  return (
    <Problem
      title="The webhook could not be loaded"
      error={webhook.error}
      onRetry={() => void webhook.refetch()}
      isRetrying={webhook.isFetching}
    />
  );
}

interface WebhookBreadcrumbProps {
  accountId: number;
  webhookId: string;
  /** Name of the webhook; undefined until it is loaded. */
  name: string | undefined;
}

/** Breadcrumb from the list to the webhook of a page. */
export function WebhookBreadcrumb({ accountId, webhookId, name = 'Webhook' }: WebhookBreadcrumbProps) {
  return (
    <Group gap={6} component="nav" aria-label="Breadcrumb">
      <Anchor component={Link} to={webhooksPath(accountId)} size="sm">
        Webhooks
      </Anchor>
      <span aria-hidden>/</span>
      <Anchor
        component={Link}
        to={webhookPath(accountId, webhookId)}
        size="sm"
        style={{ overflowWrap: 'anywhere', minWidth: 0 }}
      >
        {name}
      </Anchor>
    </Group>
  );
}
