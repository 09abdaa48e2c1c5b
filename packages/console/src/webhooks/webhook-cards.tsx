import { Anchor, Group, Paper, Skeleton, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import type { Subscription } from '../api/types.ts';
import { LastStatus } from '../components/state.tsx';
import { webhookPath } from '../paths.ts';
import { eventsWords, jobsWords } from '../words/webhooks.ts';
import { ActiveSwitch } from './active-switch.tsx';
import { RowActions } from './row-actions.tsx';
import classes from './webhook-cards.module.css';
import type { WebhookListProps } from './webhook-list.tsx';

const SKELETON_CARDS_MAX = 4;

export function WebhookCards({ subscriptions, skeletonCount, isOutdated, ...card }: WebhookListProps) {
  return (
    <ul
      className={classes.list}
      data-outdated={isOutdated}
      aria-label="Webhooks"
      aria-busy={subscriptions === null}
    >
      {subscriptions?.map((subscription) => (
        <li key={subscription.id}>
          <Card subscription={subscription} {...card} />
        </li>
      )) ??
        Array.from({ length: Math.min(skeletonCount, SKELETON_CARDS_MAX) }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
          <li key={index}>
            <Skeleton h={190} />
          </li>
        ))}
    </ul>
  );
}

type CardProps = Omit<WebhookListProps, 'subscriptions' | 'skeletonCount' | 'isOutdated'> & {
  subscription: Subscription;
};

function Card({ accountId, subscription, jobNames, refusal, onActive, onDelete }: CardProps) {
  const { id, name, event_types, job_ids, client_url, deactivate_reason } = subscription;
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
        <Anchor component={Link} to={webhookPath(accountId, id)} fw={600} className={classes.anywhere ?? ''}>
          {name}
        </Anchor>
        <RowActions
          accountId={accountId}
          subscription={subscription}
          mayWrite={refusal === null}
          onDelete={() => onDelete(subscription)}
        />
      </Group>
      <dl className={classes.facts}>
        <Fact label="Events">{eventsWords(event_types)}</Fact>
        <Fact label="Jobs">{jobsWords(job_ids, jobNames)}</Fact>
        <Fact label="Endpoint">
          <Text span ff="monospace" fz={12.5} className={classes.anywhere ?? ''}>
            {client_url}
          </Text>
        </Fact>
        <Fact label="Last status">
          <LastStatus subscription={subscription} />
        </Fact>
        <Fact label="Active">
          <Stack gap={2}>
            <ActiveSwitch
              subscription={subscription}
              refusal={refusal}
              onChange={(active) => onActive(subscription, active)}
            />
            {deactivate_reason !== undefined && (
              <Text span size="xs" c="dimmed">
                {deactivate_reason}
              </Text>
            )}
          </Stack>
        </Fact>
      </dl>
    </Paper>
  );
}

function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
