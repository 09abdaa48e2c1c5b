import { Alert, Anchor, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId } from 'react';
import { Link } from 'react-router';
import { recoveriesKey, recoveriesQuery, startRecovery } from '../api/deliveries.ts';
import { incidentsKey } from '../api/incidents.ts';
import { testEndpoint } from '../api/subscriptions.ts';
import type { Incident, Recovery } from '../api/types.ts';
import { GuardedButton, GuardedLinkButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { deliveryPath, editWebhookPath, webhookPath } from '../paths.ts';
import { describeProgress, formatOutcome } from '../webhook/recover-wording.ts';
import { describeVerification } from '../wording/deliveries.ts';
import { causeTitle, describeImpact, describeOtherCauses, formatResendLabel } from '../wording/incidents.ts';
import classes from './incidents.module.css';

interface IncidentCardProps {
  accountId: number;
  incident: Incident;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
  /** Whether the card is on the webhook's own page, which shows the name already. */
  isOnWebhookPage?: boolean;
}

/** An incident of one webhook: its cause, start, affected deliveries, and what to do. */
export function IncidentCard({
  accountId,
  incident,
  denialReason,
  isOnWebhookPage = false,
}: IncidentCardProps) {
  const titleId = useId();
  const {
    subscription_id: webhookId,
    subscription_name,
    since,
    endpoint_changed_at,
    last_success_at,
  } = incident;
  const key = { accountId, webhookId };
  const test = useMutation({ mutationFn: () => testEndpoint(key, 'job.run.errored') });
  const otherCauses = describeOtherCauses(incident);
  return (
    <Paper
      component="article"
      withBorder
      p="md"
      className={classes.card ?? ''}
      data-endpoint-changed={endpoint_changed_at !== null}
      aria-labelledby={titleId}
    >
      <Stack gap="xs">
        <Group gap="xs">
          <StatusBadge tone={endpoint_changed_at === null ? 'bad' : 'waiting'}>
            {endpoint_changed_at === null ? 'Failing' : 'Not verified yet'}
          </StatusBadge>
          {!isOnWebhookPage && (
            <Anchor
              component={Link}
              to={webhookPath(accountId, webhookId)}
              fw={600}
              className={classes.name ?? ''}
            >
              {subscription_name}
            </Anchor>
          )}
          <Text span size="sm" c="dimmed">
            since <Timestamp at={since} />
          </Text>
        </Group>
        <Title order={isOnWebhookPage ? 2 : 3} size="h4" id={titleId} className={classes.breakAnywhere ?? ''}>
          {causeTitle(incident)}
        </Title>
        {incident.causes[0] !== undefined && <Text size="sm">{incident.causes[0].advice}</Text>}
        {endpoint_changed_at !== null && (
          <Text size="sm">
            The webhook was changed <Timestamp at={endpoint_changed_at} />. No delivery has succeeded since:
            test the endpoint, then resend the failed deliveries.
          </Text>
        )}
        <Text size="sm">
          {describeImpact(incident)} {otherCauses}
        </Text>
        <Text size="sm" c="dimmed">
          <Evidence accountId={accountId} incident={incident} />
          {endpoint_changed_at === null &&
            (last_success_at === null ? (
              'No delivery has succeeded yet.'
            ) : (
              <>
                The last success was <Timestamp at={last_success_at} />.
              </>
            ))}
        </Text>
        <Group gap="xs" mt={4}>
          <GuardedLinkButton
            to={editWebhookPath(accountId, webhookId)}
            reason={denialReason}
            size="xs"
            variant="default"
          >
            Edit the webhook
          </GuardedLinkButton>
          {!isOnWebhookPage && (
            <GuardedButton
              reason={denialReason}
              size="xs"
              variant="default"
              loading={test.isPending}
              onClick={() => test.mutate()}
            >
              Test the fix
            </GuardedButton>
          )}
          <Resend accountId={accountId} incident={incident} denialReason={denialReason} />
        </Group>
        <InlineTestResult test={test} />
      </Stack>
    </Paper>
  );
}

/** Links to the first and the latest affected delivery. */
function Evidence({ accountId, incident }: Pick<IncidentCardProps, 'accountId' | 'incident'>) {
  const { first_delivery, last_delivery, subscription_id } = incident;
  if (first_delivery === null || last_delivery === null) return null;
  const link = (delivery: typeof first_delivery, label: string) => (
    <>
      <Anchor
        component={Link}
        to={deliveryPath(accountId, subscription_id, delivery.id)}
        inherit
        underline="always"
      >
        {label}
      </Anchor>{' '}
      <Timestamp at={delivery.created_at} />
    </>
  );
  if (first_delivery.id === last_delivery.id) return <>{link(first_delivery, 'Delivery')}. </>;
  return (
    <>
      {link(first_delivery, 'First delivery')}, {link(last_delivery, 'latest')}.{' '}
    </>
  );
}

function InlineTestResult({
  test,
}: {
  test: { data?: Parameters<typeof describeVerification>[0] | undefined; error: Error | null };
}) {
  if (test.error !== null) return <Problem title="The endpoint was not tested" error={test.error} />;
  if (test.data === undefined) return null;
  const { isGood, title, advice } = describeVerification(test.data);
  return (
    <Alert
      role="status"
      color={isGood ? 'green' : 'red'}
      icon={isGood ? <IconCircleCheck aria-hidden /> : <IconCircleX aria-hidden />}
      title={title}
    >
      {advice !== null && <Text size="sm">{advice}</Text>}
    </Alert>
  );
}

/** Resends the failed deliveries created from the incident's first to its last, and shows the progress. */
export function Resend({ accountId, incident, denialReason }: Omit<IncidentCardProps, 'isOnWebhookPage'>) {
  const key = { accountId, webhookId: incident.subscription_id };
  const client = useQueryClient();
  const { failed_count, first_delivery, last_delivery } = incident;
  const start = useMutation({
    mutationFn: (window: { since: string; until: string }) =>
      startRecovery(key, { ...window, status: 'failed' }),
    onSuccess: (recovery) => {
      client.setQueryData<Recovery[]>(recoveriesKey(key), (before = []) => [recovery, ...before]);
      void client.invalidateQueries({ queryKey: incidentsKey(accountId) });
    },
  });
  const recoveries = useQuery({ ...recoveriesQuery(key), enabled: start.isSuccess });
  const recovery = recoveries.data?.find(({ id }) => id === start.data?.id) ?? start.data;
  return (
    <>
      {failed_count > 0 && first_delivery !== null && last_delivery !== null && (
        <GuardedButton
          reason={denialReason}
          size="xs"
          loading={start.isPending}
          onClick={() =>
            // The window of a recovery excludes its end.
            start.mutate({
              since: first_delivery.created_at,
              until: String(BigInt(last_delivery.created_at) + 1n),
            })
          }
        >
          {formatResendLabel(incident)}
        </GuardedButton>
      )}
      {recovery !== undefined && (
        <Text size="sm" role="status">
          {describeProgress(recovery)} {formatOutcome(recovery.outcome)}
        </Text>
      )}
      {start.error !== null && <Problem title="The deliveries were not resent" error={start.error} />}
    </>
  );
}
