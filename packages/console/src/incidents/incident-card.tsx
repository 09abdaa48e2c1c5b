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
import { Moment, StatusBadge } from '../components/state.tsx';
import { deliveryPath, editWebhookPath, webhookPath } from '../paths.ts';
import { outcomeWords, progressWords } from '../webhook/recover-words.ts';
import { verificationWords } from '../words/deliveries.ts';
import { causeTitle, harmWords, otherCausesWords, resendWords } from '../words/incidents.ts';
import classes from './incidents.module.css';

interface IncidentCardProps {
  accountId: number;
  incident: Incident;
  /** Reason why the user may not change webhooks; null if the user may. */
  refusal: string | null;
  /** Whether the card is on the webhook's own page, which shows the name already. */
  isOfPage?: boolean;
}

/** An incident of one webhook: its cause, start, affected deliveries, and what to do. */
export function IncidentCard({ accountId, incident, refusal, isOfPage = false }: IncidentCardProps) {
  const titleId = useId();
  const { subscription_id: webhookId, subscription_name, since, moved_at, last_success_at } = incident;
  const key = { accountId, webhookId };
  const test = useMutation({ mutationFn: () => testEndpoint(key, 'job.run.errored') });
  const others = otherCausesWords(incident);
  return (
    <Paper
      component="article"
      withBorder
      p="md"
      className={classes.card ?? ''}
      data-moved={moved_at !== null}
      aria-labelledby={titleId}
    >
      <Stack gap="xs">
        <Group gap="xs">
          <StatusBadge tone={moved_at === null ? 'bad' : 'waiting'}>
            {moved_at === null ? 'Failing' : 'Not verified yet'}
          </StatusBadge>
          {!isOfPage && (
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
            since <Moment at={since} />
          </Text>
        </Group>
        <Title order={isOfPage ? 2 : 3} size="h4" id={titleId} className={classes.anywhere ?? ''}>
          {causeTitle(incident)}
        </Title>
        {incident.causes[0] !== undefined && <Text size="sm">{incident.causes[0].advice}</Text>}
        {moved_at !== null && (
          <Text size="sm">
            The webhook was changed <Moment at={moved_at} />. No delivery has succeeded since: test the
            endpoint, then resend the failed deliveries.
          </Text>
        )}
        <Text size="sm">
          {harmWords(incident)} {others}
        </Text>
        <Text size="sm" c="dimmed">
          <Evidence accountId={accountId} incident={incident} />
          {moved_at === null &&
            (last_success_at === null ? (
              'No delivery has succeeded yet.'
            ) : (
              <>
                The last success was <Moment at={last_success_at} />.
              </>
            ))}
        </Text>
        <Group gap="xs" mt={4}>
          <GuardedLinkButton
            to={editWebhookPath(accountId, webhookId)}
            reason={refusal}
            size="xs"
            variant="default"
          >
            Edit the webhook
          </GuardedLinkButton>
          {!isOfPage && (
            <GuardedButton
              reason={refusal}
              size="xs"
              variant="default"
              loading={test.isPending}
              onClick={() => test.mutate()}
            >
              Test the fix
            </GuardedButton>
          )}
          <Resend accountId={accountId} incident={incident} refusal={refusal} />
        </Group>
        <TestLine test={test} />
      </Stack>
    </Paper>
  );
}

/** Links to the first and the latest affected delivery. */
function Evidence({ accountId, incident }: Pick<IncidentCardProps, 'accountId' | 'incident'>) {
  const { first_delivery, last_delivery, subscription_id } = incident;
  if (first_delivery === null || last_delivery === null) return null;
  const link = (delivery: typeof first_delivery, words: string) => (
    <>
      <Anchor
        component={Link}
        to={deliveryPath(accountId, subscription_id, delivery.id)}
        inherit
        underline="always"
      >
        {words}
      </Anchor>{' '}
      <Moment at={delivery.created_at} />
    </>
  );
  if (first_delivery.id === last_delivery.id) return <>{link(first_delivery, 'Delivery')}. </>;
  return (
    <>
      {link(first_delivery, 'First delivery')}, {link(last_delivery, 'latest')}.{' '}
    </>
  );
}

function TestLine({
  test,
}: {
  test: { data?: Parameters<typeof verificationWords>[0] | undefined; error: Error | null };
}) {
  if (test.error !== null) return <Problem title="The endpoint was not tested" error={test.error} />;
  if (test.data === undefined) return null;
  const { isGood, title, advice } = verificationWords(test.data);
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

/** Resends exactly the failed deliveries of the incident, and shows the progress. */
export function Resend({ accountId, incident, refusal }: Omit<IncidentCardProps, 'isOfPage'>) {
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
          reason={refusal}
          size="xs"
          loading={start.isPending}
          onClick={() =>
            // The window excludes its end.
            start.mutate({
              since: first_delivery.created_at,
              until: String(BigInt(last_delivery.created_at) + 1n),
            })
          }
        >
          {resendWords(incident)}
        </GuardedButton>
      )}
      {recovery !== undefined && (
        <Text size="sm" role="status">
          {progressWords(recovery)} {outcomeWords(recovery.outcome)}
        </Text>
      )}
      {start.error !== null && <Problem title="The deliveries were not resent" error={start.error} />}
    </>
  );
}
