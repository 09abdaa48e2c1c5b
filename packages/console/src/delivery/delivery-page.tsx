import { Anchor, Code, Group, Skeleton, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { useChanges } from '../api/changes.ts';
import { deliveryQuery } from '../api/deliveries.ts';
import { subscriptionQuery, type WebhookKey } from '../api/subscriptions.ts';
import type { Account, Delivery, DeliveryDetail } from '../api/types.ts';
import { CopyButton } from '../components/copy.tsx';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, Problem } from '../components/page.tsx';
import { StatusBadge, Timestamp, useNow } from '../components/state.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { Fact } from '../webhook/fact.tsx';
import classes from '../webhook/webhook-facts.module.css';
import {
  deliveryTone,
  describeState,
  formatDeliveryDuration,
  formatDeliveryStatus,
  formatJob,
  formatLastResponse,
  formatNextAttempt,
} from '../wording/deliveries.ts';
import { statusTone } from '../wording/http-status.ts';
import { EVENT_TEXTS, writeDenialReason } from '../wording/webhooks.ts';
import { AttemptTimeline } from './attempts.tsx';
import { MessageSection } from './message-section.tsx';
import { CopyAsCurl, PayloadSection, RedeliverButton } from './payload.tsx';

const POLL_MS = 1_500;

export function Component() {
  const account = useAccount();
  const { webhookId = '', deliveryId = '' } = useParams();
  const key = { accountId: account.id, webhookId };
  useChanges(account.id, webhookId);
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
            title="Live updates are interrupted"
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
        <PageHeading title="Delivery" breadcrumb={<DeliveryBreadcrumb account={account} webhook={key} />} />
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
  const { label } = EVENT_TEXTS[delivery.event_type];
  const format = delivery.attempts.at(-1)?.format;
  return (
    <>
      <PageHeading
        title={`${label}, run ${delivery.run_id}`}
        tabTitle={`Delivery: ${label}, run ${delivery.run_id}`}
        breadcrumb={<DeliveryBreadcrumb account={account} webhook={webhook} name={subscription.data?.name} />}
        actions={
          <>
            <CopyAsCurl delivery={delivery} webhook={subscription.data} />
            <RedeliverButton
              webhook={webhook}
              delivery={delivery}
              isActive={subscription.data?.active ?? true}
              denialReason={writeDenialReason(account)}
            />
          </>
        }
      />
      <WriteNotice />
      <Stack gap="md">
        <DeliveryState delivery={delivery} />
        <DeliveryFacts delivery={delivery} />
        <AttemptTimeline delivery={delivery} />
        {format === undefined || delivery.payload === null ? (
          <PayloadSection delivery={delivery} />
        ) : (
          <MessageSection
            format={format}
            body={delivery.payload}
            webhookName={subscription.data?.name ?? ''}
          />
        )}
      </Stack>
    </>
  );
}

function DeliveryBreadcrumb({
  account,
  webhook,
  name = 'Webhook',
}: {
  account: Account;
  webhook: WebhookKey;
  name?: string | undefined;
}) {
  return (
    <Group gap={6} component="nav" aria-label="Breadcrumb">
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

const SENT_LATE =
  'Sent late: a later event of the run had been sent before this one was recorded, so it did not wait.';

/** State of the delivery, the reason, and the next attempt. */
function DeliveryState({ delivery }: { delivery: Delivery }) {
  const { next_attempt_at, completed_at } = delivery;
  return (
    <Group gap="xs">
      <StatusBadge tone={deliveryTone(delivery)}>{formatDeliveryStatus(delivery)}</StatusBadge>
      <Text size="sm" component="div" style={{ overflowWrap: 'anywhere', minWidth: 0 }}>
        {describeState(delivery)} {delivery.out_of_order === true && SENT_LATE}{' '}
        {delivery.status === 'pending' && next_attempt_at !== null && (
          <Countdown at={next_attempt_at} attemptCount={delivery.attempt_count} />
        )}
        {completed_at !== null && <Timestamp at={completed_at} />}
      </Text>
      <VisuallyHidden role="status">
        {formatDeliveryStatus(delivery)}, {delivery.attempt_count} attempts so far
      </VisuallyHidden>
    </Group>
  );
}

/** Not announced by screen readers, which would otherwise repeat it every second. */
function Countdown({ at, attemptCount }: { at: string; attemptCount: number }) {
  const nowMs = useNow(1_000);
  return (
    <>
      {formatNextAttempt(at, attemptCount, nowMs)} (<Timestamp at={at} format="full" />)
    </>
  );
}

/** Event, job and ids of the delivery. */
function DeliveryFacts({ delivery }: { delivery: Delivery }) {
  const { attempt_count, http_status_code, error_code } = delivery;
  const responseTone = attempt_count === 0 ? 'neutral' : statusTone(http_status_code, error_code);
  return (
    <dl className={classes.facts}>
      <Fact name="Event">
        {EVENT_TEXTS[delivery.event_type].label} <Code>{delivery.event_type}</Code>
      </Fact>
      <Fact name="Job">{formatJob(delivery)}</Fact>
      <Fact name="Created">
        <Timestamp at={delivery.created_at} format="full" />
      </Fact>
      <Fact name="Last response">
        <Group gap="2px 8px">
          <StatusBadge tone={responseTone}>{formatLastResponse(delivery)}</StatusBadge>
          {delivery.duration_ms !== null && <span>in {formatDeliveryDuration(delivery)}</span>}
        </Group>
      </Fact>
      <Id name="Delivery id" value={delivery.id} />
      <Id name="Event id" value={delivery.event_id} />
      <Id name="Job id" value={delivery.job_id} />
      <Id name="Run id" value={delivery.run_id} />
    </dl>
  );
}

function Id({ name, value }: { name: string; value: string }) {
  return (
    <Fact name={name}>
      <Group gap={6} wrap="nowrap" align="flex-start">
        <Code className={classes.code ?? ''}>{value}</Code>
        <CopyButton value={value} what={`the ${name.toLowerCase()}`} size="compact-xs" variant="subtle" />
      </Group>
    </Fact>
  );
}
