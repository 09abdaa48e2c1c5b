import { Anchor, Skeleton, Table, Text, VisuallyHidden } from '@mantine/core';
import { Link } from 'react-router';
import type { Subscription } from '../api/types.ts';
import { LastStatus } from '../components/state.tsx';
import { webhookPath } from '../paths.ts';
import { eventsWords, jobsWords } from '../words/webhooks.ts';
import { ActiveSwitch } from './active-switch.tsx';
import { RowActions } from './row-actions.tsx';
import type { WebhookListProps } from './webhook-list.tsx';
import classes from './webhook-table.module.css';

const COLUMNS = ['Name', 'Events', 'Jobs', 'Endpoint', 'Last status', 'Active'];
const SKELETON_ROWS_MAX = 10;

export function WebhookTable({ subscriptions, skeletonCount, isOutdated, ...row }: WebhookListProps) {
  return (
    <Table className={classes.table ?? ''} data-outdated={isOutdated} verticalSpacing={0} highlightOnHover>
      <Table.Caption className={classes.caption ?? ''}>
        <VisuallyHidden>Webhooks</VisuallyHidden>
      </Table.Caption>
      <Table.Thead>
        <Table.Tr>
          {COLUMNS.map((column) => (
            <Table.Th key={column} scope="col">
              {column}
            </Table.Th>
          ))}
          <Table.Th scope="col" w={52}>
            <VisuallyHidden>More</VisuallyHidden>
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody aria-busy={subscriptions === null}>
        {subscriptions?.map((subscription) => (
          <Row key={subscription.id} subscription={subscription} {...row} />
        )) ??
          Array.from({ length: Math.min(skeletonCount, SKELETON_ROWS_MAX) }, (_, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
            <SkeletonRow key={index} />
          ))}
      </Table.Tbody>
    </Table>
  );
}

type RowProps = Omit<WebhookListProps, 'subscriptions' | 'skeletonCount' | 'isOutdated'> & {
  subscription: Subscription;
};

function Row({ accountId, subscription, jobNames, refusal, onActive, onDelete }: RowProps) {
  const { id, name, event_types, job_ids, client_url, deactivate_reason } = subscription;
  return (
    <Table.Tr>
      <Table.Th scope="row" className={classes.name ?? ''}>
        <Anchor component={Link} to={webhookPath(accountId, id)} size="sm" fw={600}>
          {name}
        </Anchor>
      </Table.Th>
      <Table.Td>
        <Text size="sm">{eventsWords(event_types)}</Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" lineClamp={2} className={classes.anywhere ?? ''}>
          {jobsWords(job_ids, jobNames)}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" ff="monospace" lineClamp={2} className={classes.endpoint ?? ''}>
          {client_url}
        </Text>
      </Table.Td>
      <Table.Td>
        <LastStatus subscription={subscription} />
      </Table.Td>
      <Table.Td>
        <ActiveSwitch
          subscription={subscription}
          refusal={refusal}
          onChange={(active) => onActive(subscription, active)}
        />
        {deactivate_reason !== undefined && (
          <Text size="xs" c="dimmed">
            {deactivate_reason}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <RowActions
          accountId={accountId}
          subscription={subscription}
          mayWrite={refusal === null}
          onDelete={() => onDelete(subscription)}
        />
      </Table.Td>
    </Table.Tr>
  );
}

/** As high as a row, so that nothing jumps. */
function SkeletonRow() {
  return (
    <Table.Tr>
      {[70, 80, 50, 90, 60, 40].map((width) => (
        <Table.Td key={width}>
          <Skeleton h={14} w={`${width}%`} />
        </Table.Td>
      ))}
      <Table.Td />
    </Table.Tr>
  );
}
