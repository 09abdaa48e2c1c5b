import { Anchor, Button, Paper, Skeleton, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from 'react-router';
import { accountLogQuery } from '../api/activity.ts';
import type { AccountDelivery } from '../api/types.ts';
import { Problem, useIsNarrow } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { Table } from '../components/table.tsx';
import { deliveryPath, runPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import classes from '../webhook/log/delivery-rows.module.css';
import {
  deliveryTone,
  formatDeliveryDuration,
  formatDeliveryStatus,
  formatJob,
  formatLastResponse,
} from '../wording/deliveries.ts';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import type { EventsQuery } from './events-address.ts';

const PAGE_SIZE = 25;
const TABLE_MIN_EM = 75;

/** Matching deliveries, newest first, with a button for the next page. */
export function EventsLog({ query }: { query: EventsQuery }) {
  const account = useAccount();
  const log = useInfiniteQuery(accountLogQuery(account.id, { ...query, limit: PAGE_SIZE }));
  const rows = log.data?.pages.flatMap(({ data }) => data) ?? [];
  const last = log.data?.pages.at(-1)?.extra.pagination;
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={LOG_HEADING_ID}>
      <Title order={2} size="h4" id={LOG_HEADING_ID} mb="sm">
        Deliveries
      </Title>
      {log.isError && log.data === undefined && (
        <Problem
          title="The deliveries could not be loaded"
          error={log.error}
          onRetry={() => void log.refetch()}
          isRetrying={log.isFetching}
        />
      )}
      {log.isPending && <Skeleton height={240} role="status" aria-label="Loading" />}
      <div style={{ opacity: log.isPlaceholderData ? 0.5 : 1 }} aria-busy={log.isPlaceholderData}>
        {rows.length > 0 && <Rows rows={rows} />}
      </div>
      {last !== undefined && (
        <Stack gap="xs" mt="sm" align="flex-start">
          {rows.length === 0 && last.scanned_until === null && <Text size="sm">No delivery matches.</Text>}
          {last.scanned_until !== null && (
            <Text size="sm" role="status">
              {rows.length === 0 ? 'No matches so far: searched' : 'Searched'} back to{' '}
              <Timestamp at={last.scanned_until} format="full" />.
            </Text>
          )}
          {log.hasNextPage && (
            <Button
              size="xs"
              variant="default"
              onClick={() => void log.fetchNextPage()}
              loading={log.isFetchingNextPage}
            >
              {last.scanned_until === null ? 'Show older' : 'Search further back'}
            </Button>
          )}
        </Stack>
      )}
    </Paper>
  );
}

const LOG_HEADING_ID = 'deliveries';
const HEADINGS = ['Status', 'Event', 'Webhook', 'Job', 'Run', 'When', 'Last response', 'Took'];

function Rows({ rows }: { rows: readonly AccountDelivery[] }) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  if (isNarrow)
    return (
      <ul className={classes.cards} aria-label="Deliveries, newest first">
        {rows.map((delivery) => (
          <li key={delivery.id} className={classes.card}>
            <div className={classes.line}>
              <EventLink delivery={delivery} />
              <State delivery={delivery} />
            </div>
            <div className={classes.line}>
              <span>{delivery.webhook_name}</span>
              <Timestamp at={delivery.created_at} format="exact" />
            </div>
            <div className={`${classes.line} ${classes.dimmed}`}>
              <span>
                {formatJob(delivery)}, run {delivery.run_id}
              </span>
              <span>{formatLastResponse(delivery)}</span>
            </div>
          </li>
        ))}
      </ul>
    );
  return (
    <Table className={classes.table ?? ''} verticalSpacing={5} aria-label="Deliveries, newest first">
      <thead>
        <tr>
          {HEADINGS.map((heading) => (
            <th key={heading}>{heading}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((delivery) => (
          <tr key={delivery.id} className={delivery.webhook_state === 'deleted' ? '' : (classes.row ?? '')}>
            <td>
              <State delivery={delivery} />
            </td>
            <td>
              <EventLink delivery={delivery} />
            </td>
            <td>
              <div className={classes.job} title={delivery.webhook_name}>
                {delivery.webhook_name}
              </div>
            </td>
            <td>
              <div className={classes.job} title={delivery.job_name}>
                {formatJob(delivery)}
              </div>
            </td>
            <td>
              <RunLink runId={delivery.run_id} />
            </td>
            <td>
              <Timestamp at={delivery.created_at} format="exact" />
            </td>
            <td>{formatLastResponse(delivery)}</td>
            <td>{formatDeliveryDuration(delivery)}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function State({ delivery }: { delivery: AccountDelivery }) {
  return <StatusBadge tone={deliveryTone(delivery)}>{formatDeliveryStatus(delivery)}</StatusBadge>;
}

function RunLink({ runId }: { runId: string }) {
  const account = useAccount();
  return (
    // The link must be above the link that covers the row.
    <Anchor
      component={Link}
      to={runPath(account.id, runId)}
      size="sm"
      style={{ position: 'relative', zIndex: 1 }}
      aria-label={`Run ${runId}`}
    >
      {runId}
    </Anchor>
  );
}

/** Link to the delivery. Deliveries of a deleted webhook have no page. */
function EventLink({ delivery }: { delivery: AccountDelivery }) {
  const account = useAccount();
  const { label } = EVENT_TEXTS[delivery.event_type];
  if (delivery.webhook_state === 'deleted')
    return (
      <span>
        {label}{' '}
        <Text span size="xs" c="dimmed">
          webhook deleted
        </Text>
      </span>
    );
  return (
    <Link to={deliveryPath(account.id, delivery.subscription_id, delivery.id)} className={classes.link ?? ''}>
      {label}
      <VisuallyHidden>
        , run {delivery.run_id} to {delivery.webhook_name}, {formatDeliveryStatus(delivery).toLowerCase()}
      </VisuallyHidden>
    </Link>
  );
}
