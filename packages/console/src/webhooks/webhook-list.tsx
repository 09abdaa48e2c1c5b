import { Anchor, Group, Paper, Skeleton, Stack, Text, VisuallyHidden } from '@mantine/core';
import { memo, type ReactNode } from 'react';
import { Link } from 'react-router';
import type { Rates, Subscription } from '../api/types.ts';
import { DeferredRender, useIsNarrow } from '../components/page.tsx';
import { LastStatus } from '../components/state.tsx';
import { Table } from '../components/table.tsx';
import { webhookPath } from '../paths.ts';
import { formatEventTypes, formatJobs } from '../wording/webhooks.ts';
import { Rate } from './rate.tsx';
import { ActiveSwitch, RowActions } from './webhook-actions.tsx';
import classes from './webhook-list.module.css';

export interface WebhookListProps {
  accountId: number;
  /** The webhooks of the page; null until they are loaded for the first time. */
  subscriptions: Subscription[] | null;
  /** Number of placeholders, limited to 10 rows or 4 cards. */
  skeletonCount: number;
  /** Whether rows of the previous page or search are shown while the requested ones are loading. */
  isOutdated: boolean;
  jobNames: ReadonlyMap<string, string>;
  /** Rates of the last 24 hours, by webhook id; loaded after the rows. */
  rates: ReadonlyMap<string, Rates>;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
  onActive: (subscription: Subscription, active: boolean) => void;
  onDelete: (subscription: Subscription) => void;
}

/** A table, or cards on narrow screens. */
export const WebhookList = memo(function WebhookList(props: WebhookListProps) {
  const List = useIsNarrow(TABLE_MIN_EM) ? WebhookCards : WebhookTable;
  if (props.subscriptions === null) return <List {...props} />;
  return (
    <DeferredRender fallback={<List {...props} subscriptions={null} />}>
      <List {...props} />
    </DeferredRender>
  );
});

/** Minimum width of the table: below it, the column of the endpoint would be too narrow. */
const TABLE_MIN_EM = 78;
const COLUMNS = ['Name', 'Events', 'Jobs', 'Endpoint', 'Last 24 h', 'Last status', 'Active'];
const SKELETON_ROWS_MAX = 10;
const SKELETON_CARDS_MAX = 4;

function WebhookTable({ subscriptions, skeletonCount, isOutdated, ...row }: WebhookListProps) {
  return (
    <Table className={classes.table ?? ''} data-outdated={isOutdated} verticalSpacing={0} highlightOnHover>
      <caption className={classes.caption ?? ''}>
        <VisuallyHidden>Webhooks</VisuallyHidden>
      </caption>
      <thead>
        <tr>
          {COLUMNS.map((column) => (
            <th key={column} scope="col">
              {column}
            </th>
          ))}
          <th scope="col" style={{ width: 52 }}>
            <VisuallyHidden>More</VisuallyHidden>
          </th>
        </tr>
      </thead>
      <tbody aria-busy={subscriptions === null}>
        {subscriptions?.map((subscription) => (
          <Row key={subscription.id} subscription={subscription} {...row} />
        )) ??
          Array.from({ length: Math.min(skeletonCount, SKELETON_ROWS_MAX) }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: all placeholders are identical
            <SkeletonRow key={index} />
          ))}
      </tbody>
    </Table>
  );
}

type ItemProps = Omit<WebhookListProps, 'subscriptions' | 'skeletonCount' | 'isOutdated'> & {
  subscription: Subscription;
};

function Row({ accountId, subscription, jobNames, rates, denialReason, onActive, onDelete }: ItemProps) {
  const { id, name, event_types, job_ids, client_url } = subscription;
  return (
    <tr>
      <th scope="row" className={classes.name ?? ''}>
        <Anchor component={Link} to={webhookPath(accountId, id)} size="sm" fw={600}>
          <Text span inherit lineClamp={3} title={name}>
            {name}
          </Text>
        </Anchor>
        {subscription.labels && <Labels labels={subscription.labels} />}
      </th>
      <td>
        <Text size="sm">{formatEventTypes(event_types)}</Text>
      </td>
      <td>
        <Text size="sm" lineClamp={2} className={classes.breakAnywhere ?? ''}>
          {formatJobs(job_ids, jobNames)}
        </Text>
      </td>
      <td>
        <Text size="sm" ff="monospace" lineClamp={2} className={classes.endpoint ?? ''}>
          {client_url === '' ? FEED_ONLY : client_url}
        </Text>
      </td>
      <td>
        <Rate rates={rates.get(id)} />
      </td>
      <td>
        <LastStatus subscription={subscription} />
      </td>
      <td>
        <Activity subscription={subscription} denialReason={denialReason} onActive={onActive} />
      </td>
      <td>
        <RowActions
          accountId={accountId}
          subscription={subscription}
          mayWrite={denialReason === null}
          onDelete={() => onDelete(subscription)}
        />
      </td>
    </tr>
  );
}

const FEED_ONLY = 'none: read from the feed';

/** Labels of a webhook, each a link to the list of webhooks that have it. */
function Labels({ labels }: { labels: NonNullable<Subscription['labels']> }) {
  return (
    <Group gap={4}>
      {Object.entries(labels).map(([name, value]) => {
        const label = `${name}:${value}`;
        return (
          <Anchor
            key={name}
            component={Link}
            to={`?${new URLSearchParams({ label })}`}
            size="xs"
            className={classes.breakAnywhere ?? ''}
            aria-label={`Show webhooks with the label ${label}`}
          >
            {value === '' ? name : label}
          </Anchor>
        );
      })}
    </Group>
  );
}

/** Whether the webhook is active, and the reason if the service switched it off. */
function Activity({
  subscription,
  denialReason,
  onActive,
}: Pick<ItemProps, 'subscription' | 'denialReason' | 'onActive'>) {
  return (
    <Stack gap={2}>
      <ActiveSwitch
        subscription={subscription}
        denialReason={denialReason}
        onChange={(active) => onActive(subscription, active)}
      />
      {subscription.deactivate_reason !== undefined && (
        <Text size="xs" c="dimmed">
          {subscription.deactivate_reason}
        </Text>
      )}
    </Stack>
  );
}

/** Has the height of a row, so that the page does not shift. */
function SkeletonRow() {
  return (
    <tr>
      {[70, 80, 50, 90, 75, 60, 40].map((width) => (
        <td key={width}>
          <Skeleton h={14} w={`${width}%`} />
        </td>
      ))}
      <td />
    </tr>
  );
}

function WebhookCards({ subscriptions, skeletonCount, isOutdated, ...card }: WebhookListProps) {
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
          // biome-ignore lint/suspicious/noArrayIndexKey: all placeholders are identical
          <li key={index}>
            <Skeleton h={190} />
          </li>
        ))}
    </ul>
  );
}

function Card({ accountId, subscription, jobNames, rates, denialReason, onActive, onDelete }: ItemProps) {
  const { id, name, event_types, job_ids, client_url } = subscription;
  return (
    <Paper withBorder p="sm">
      <Group justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
        <Anchor
          component={Link}
          to={webhookPath(accountId, id)}
          fw={600}
          className={classes.breakAnywhere ?? ''}
        >
          {name}
        </Anchor>
        <RowActions
          accountId={accountId}
          subscription={subscription}
          mayWrite={denialReason === null}
          onDelete={() => onDelete(subscription)}
        />
      </Group>
      {subscription.labels && <Labels labels={subscription.labels} />}
      <dl className={classes.facts}>
        <Fact label="Events">{formatEventTypes(event_types)}</Fact>
        <Fact label="Jobs">{formatJobs(job_ids, jobNames)}</Fact>
        <Fact label="Endpoint">
          <Text span ff="monospace" fz={12.5} className={classes.breakAnywhere ?? ''}>
            {client_url === '' ? FEED_ONLY : client_url}
          </Text>
        </Fact>
        <Fact label="Last 24 hours">
          <Rate rates={rates.get(id)} />
        </Fact>
        <Fact label="Last status">
          <LastStatus subscription={subscription} />
        </Fact>
        <Fact label="Active">
          <Activity subscription={subscription} denialReason={denialReason} onActive={onActive} />
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
