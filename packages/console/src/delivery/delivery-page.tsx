import { Anchor, Group, Skeleton, Stack, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { deliveryQuery } from '../api/deliveries.ts';
import { subscriptionQuery, type WebhookKey } from '../api/subscriptions.ts';
import type { Account, DeliveryDetail } from '../api/types.ts';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, Problem } from '../components/page.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/dead-ends.tsx';
import { EVENT_WORDS, writeRefusal } from '../words/webhooks.ts';
import { AttemptTimeline } from './attempt-timeline.tsx';
import { CopyAsCurl } from './copy-as-curl.tsx';
import { DeliveryFacts } from './delivery-facts.tsx';
import { DeliveryState } from './delivery-state.tsx';
import { PayloadSection } from './payload-section.tsx';
import { RedeliverButton } from './redeliver-button.tsx';

const POLL_MS = 1_500;

export function Component() {
  const account = useAccount();
  const { webhookId = '', deliveryId = '' } = useParams();
  const key = { accountId: account.id, webhookId };
  const delivery = useQuery({
    ...deliveryQuery(key, deliveryId),
    refetchInterval: ({ state }) => (!state.data || state.data.status === 'pending' ? POLL_MS : false),
  });
  if (delivery.error instanceof ApiError && delivery.error.code === 404)
    return <NotFoundPage what="delivery" />;
  if (delivery.data) {
    return (
      <>
        <DeliveryPage account={account} webhook={key} delivery={delivery.data} />
        {delivery.isError && (
          <Problem
            title="Not live at the moment"
            error={delivery.error}
            onRetry={() => void delivery.refetch()}
          />
        )}
      </>
    );
  }
  if (delivery.isError) {
    return (
      <>
        <PageHeading title="Delivery" above={<Way account={account} webhook={key} />} />
        <Problem
          title="The delivery could not be loaded"
          error={delivery.error}
          onRetry={() => void delivery.refetch()}
          isRetrying={delivery.isFetching}
        />
      </>
    );
  }
  return <Loading />;
}

function DeliveryPage({
  account,
  webhook,
  delivery,
}: {
  account: Account;
  webhook: WebhookKey;
  delivery: DeliveryDetail;
}) {
  const subscription = useQuery(subscriptionQuery(webhook));
  const { label } = EVENT_WORDS[delivery.event_type];
  return (
    <>
      <PageHeading
        title={`${label}, run ${delivery.run_id}`}
        tabTitle={`Delivery: ${label}, run ${delivery.run_id}`}
        above={<Way account={account} webhook={webhook} name={subscription.data?.name} />}
        actions={
          <>
            <CopyAsCurl delivery={delivery} url={subscription.data?.client_url} />
            <RedeliverButton
              webhook={webhook}
              delivery={delivery}
              isActive={subscription.data?.active ?? true}
              refusal={writeRefusal(account)}
            />
          </>
        }
      />
      <WriteNotice />
      <Stack gap="md">
        <DeliveryState delivery={delivery} />
        <DeliveryFacts delivery={delivery} />
        <AttemptTimeline delivery={delivery} />
        <PayloadSection delivery={delivery} />
      </Stack>
    </>
  );
}

function Way({
  account,
  webhook,
  name = 'Webhook',
}: {
  account: Account;
  webhook: WebhookKey;
  name?: string | undefined;
}) {
  return (
    <Group gap={6} component="nav" aria-label="Where this delivery belongs">
      <Anchor component={Link} to={webhooksPath(account.id)} size="sm">
        Webhooks
      </Anchor>
      <span aria-hidden>/</span>
      <Anchor
        component={Link}
        to={webhookPath(account.id, webhook.webhookId)}
        size="sm"
        style={{ overflowWrap: 'anywhere', minWidth: 0 }}
      >
        {name}
      </Anchor>
    </Group>
  );
}

function Loading() {
  return (
    <Stack role="status">
      <VisuallyHidden>Loading the delivery</VisuallyHidden>
      <Skeleton height={32} width={320} />
      <Skeleton height={80} />
      <Skeleton height={240} />
      <Skeleton height={240} />
    </Stack>
  );
}
