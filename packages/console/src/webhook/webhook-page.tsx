import { Alert, Anchor, Group, Skeleton, Stack, Text, VisuallyHidden } from '@mantine/core';
import { IconAlertTriangle, IconPlayerPause } from '@tabler/icons-react';
import { type QueryClient, useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Link, type Params, useNavigate, useParams, useSearchParams } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { useChanges } from '../api/changes.ts';
import { statisticsQuery } from '../api/deliveries.ts';
import { pollUnlessLive } from '../api/live.ts';
import { subscriptionQuery } from '../api/subscriptions.ts';
import type { Account, Health, Subscription } from '../api/types.ts';
import { GuardedButton, GuardedLinkButton, WriteNotice } from '../components/guarded.tsx';
import { DeferredRender, PageHeading, Problem } from '../components/page.tsx';
import { Timestamp } from '../components/state.tsx';
import { Incidents, incidentListQuery } from '../incidents/incidents.tsx';
import { editWebhookPath, webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { ActiveSwitch, DeleteDialog, useChangeActive } from '../webhooks/webhook-actions.tsx';
import { formatEventTypes, writeDenialReason } from '../wording/webhooks.ts';
import { EmptyLog, HelpLinks, TestButton, TestOutcome, useTestEndpoint } from './first-steps.tsx';
import { KeyPair } from './key-pair.tsx';
import { hourAddress, readLogAddress, writeLogAddress } from './log/log-address.ts';
import { LOG_HEADING_ID, RecentDeliveries } from './log/recent-deliveries.tsx';
import { logQuery } from './log/use-delivery-log.ts';
import { Recover } from './recover.tsx';
import { Secret } from './secret.tsx';
import { PERIOD_DEFAULT } from './statistics/summary.ts';
import { WebhookStatistics } from './statistics/webhook-statistics.tsx';
import { WebhookFacts } from './webhook-facts.tsx';

const FeedGuide = lazy(() => import('./feed-guide.tsx'));

const pollWebhook = pollUnlessLive(5_000);

/** Prefetches the webhook, its incidents, statistics and log. */
export function prefetch(client: QueryClient, params: Params, search: URLSearchParams): void {
  const { accountId, webhookId = '' } = params;
  const webhook = { accountId: Number(accountId), webhookId };
  void client.prefetchQuery(subscriptionQuery(webhook));
  void client.prefetchQuery(incidentListQuery(webhook.accountId, webhookId));
  void client.prefetchQuery(statisticsQuery(webhook, PERIOD_DEFAULT));
  void client.prefetchQuery(logQuery(webhook, readLogAddress(search)));
}

export function Component() {
  const account = useAccount();
  const { webhookId = '' } = useParams();
  const [isDeleted, setDeleted] = useState(false);
  useChanges(account.id, webhookId);
  const query = useQuery({
    ...subscriptionQuery({ accountId: account.id, webhookId }),
    refetchInterval: pollWebhook,
    enabled: !isDeleted,
  });
  if (isDeleted) return null;
  if (query.error instanceof ApiError && query.error.code === 404) return <NotFoundPage what="webhook" />;
  if (query.data) {
    return (
      <DeferredRender key={webhookId} fallback={<Loading />}>
        <WebhookPage account={account} webhook={query.data} onDeleted={() => setDeleted(true)} />
      </DeferredRender>
    );
  }
  if (query.isError) {
    return (
      <>
        <PageHeading title="Webhook" breadcrumb={<BackLink account={account} />} />
        <Problem
          title="The webhook could not be loaded"
          error={query.error}
          onRetry={() => void query.refetch()}
          isRetrying={query.isFetching}
        />
      </>
    );
  }
  return <Loading />;
}

function WebhookPage({
  account,
  webhook,
  onDeleted,
}: {
  account: Account;
  webhook: Subscription;
  onDeleted: () => void;
}) {
  const key = { accountId: account.id, webhookId: webhook.id };
  const navigate = useNavigate();
  const [isDeleting, setDeleting] = useState(false);
  const test = useTestEndpoint(key);
  const change = useChangeActive(account.id);
  const reason = writeDenialReason(account);
  const [, setSearch] = useSearchParams();
  const showHour = (hourStart: string) => {
    setSearch(writeLogAddress(hourAddress(hourStart)), { preventScrollReset: true });
    const heading = document.getElementById(LOG_HEADING_ID);
    heading?.focus({ preventScroll: true });
    heading?.scrollIntoView({ block: 'start' });
  };
  const active = change.isPending ? change.variables.active : webhook.active;
  const isFeedOnly = webhook.client_url === '';
  return (
    <>
      <PageHeading
        title={webhook.name}
        tabTitle={active && webhook.health?.status === 'failing' ? `Failing: ${webhook.name}` : webhook.name}
        breadcrumb={<BackLink account={account} />}
        subtitle={<WebhookSummary webhook={webhook} />}
        actions={
          <>
            <ActiveSwitch
              subscription={{ ...webhook, active }}
              denialReason={reason}
              onChange={(to) => change.mutate({ subscription: webhook, active: to })}
            />
            {!isFeedOnly && <TestButton test={test} reason={reason} />}
            <GuardedLinkButton to={editWebhookPath(account.id, webhook.id)} reason={reason} variant="default">
              Edit
            </GuardedLinkButton>
            <GuardedButton reason={reason} variant="default" color="red" onClick={() => setDeleting(true)}>
              Delete
            </GuardedButton>
          </>
        }
      />
      <WriteNotice />
      <Stack gap="md">
        {!active && <InactiveNotice webhook={webhook} />}
        <Incidents
          accountId={account.id}
          webhookId={webhook.id}
          denialReason={reason}
          emptyContent={
            active && webhook.health?.status === 'failing' && <FailingNotice health={webhook.health} />
          }
        />
        <TestOutcome test={test} />
        {isFeedOnly ? (
          <Suspense>
            <FeedGuide accountId={account.id} webhookId={webhook.id} />
          </Suspense>
        ) : (
          <>
            <WebhookStatistics webhook={key} onHour={showHour} />
            <RecentDeliveries
              webhook={key}
              actions={<Recover webhook={key} isActive={webhook.active} denialReason={reason} />}
              emptyContent={
                <EmptyLog
                  accountId={account.id}
                  webhook={webhook}
                  testButton={<TestButton test={test} reason={reason} />}
                />
              }
            />
          </>
        )}
        <WebhookFacts accountId={account.id} webhook={webhook} />
        <Secret webhook={key} subscription={webhook} denialReason={reason} />
        {webhook.signature_key !== undefined && (
          <KeyPair
            webhook={key}
            signatureKey={webhook.signature_key}
            isSecretRotating={webhook.secret_rotation !== undefined}
            denialReason={reason}
          />
        )}
        {!isFeedOnly && <HelpLinks accountId={account.id} webhookId={webhook.id} />}
      </Stack>
      <DeleteDialog
        accountId={account.id}
        webhook={isDeleting ? webhook : null}
        onClose={() => setDeleting(false)}
        onDeleted={() => {
          onDeleted();
          void navigate(webhooksPath(account.id));
        }}
      />
    </>
  );
}

/** Summary of a webhook. Further facts are below the log, which is the main content of the page. */
function WebhookSummary({ webhook: { client_url, event_types, description } }: { webhook: Subscription }) {
  return (
    <Stack gap={2} style={{ overflowWrap: 'anywhere' }}>
      {description !== '' && <Text>{description}</Text>}
      <Text size="sm">
        {formatEventTypes(event_types)}
        {client_url === '' ? (
          ', read from the feed'
        ) : (
          <>
            {' to '}
            <Text span inherit ff="monospace">
              {client_url}
            </Text>
          </>
        )}
      </Text>
    </Stack>
  );
}

function BackLink({ account }: { account: Account }) {
  return (
    <Anchor component={Link} to={webhooksPath(account.id)} size="sm">
      Webhooks
    </Anchor>
  );
}

function InactiveNotice({ webhook }: { webhook: Subscription }) {
  return (
    <Alert color="gray" icon={<IconPlayerPause aria-hidden />} title="This webhook is switched off">
      {webhook.deactivate_reason !== undefined && <Text size="sm">Why: {webhook.deactivate_reason}</Text>}
      <Text size="sm">
        New events are not delivered. Pending deliveries are cancelled when their next attempt is due.
      </Text>
    </Alert>
  );
}

function FailingNotice({ health }: { health: Health }) {
  const { failing_since, last_success_at, consecutive_failures: failures } = health;
  return (
    <Alert color="red" role="status" icon={<IconAlertTriangle aria-hidden />} title="The endpoint is failing">
      <Text size="sm">
        {failures === 1
          ? 'The latest attempt failed'
          : `${failures.toLocaleString()} attempts in a row failed`}
        {failing_since !== undefined && (
          <>
            , the first <Timestamp at={failing_since} />
          </>
        )}
        .{' '}
        {last_success_at === undefined ? (
          'No delivery has succeeded yet.'
        ) : (
          <>
            The last success was <Timestamp at={last_success_at} />.
          </>
        )}
      </Text>
    </Alert>
  );
}

function Loading() {
  return (
    <Stack role="status">
      <VisuallyHidden>Loading the webhook</VisuallyHidden>
      <Group justify="space-between">
        <Skeleton height={32} width={280} />
        <Skeleton height={32} width={220} />
      </Group>
      <Skeleton height={120} />
      <Skeleton height={220} />
      <Skeleton height={320} />
    </Stack>
  );
}
