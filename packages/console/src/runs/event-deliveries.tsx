import { Anchor, Text, VisuallyHidden } from '@mantine/core';
import { Link } from 'react-router';
import type { AccountDelivery } from '../api/types.ts';
import { useIsNarrow } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { Table } from '../components/table.tsx';
import { RedeliverButton } from '../delivery/payload.tsx';
import { deliveryPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import classes from '../webhook/log/delivery-rows.module.css';
import {
  deliveryTone,
  formatDeliveryDuration,
  formatDeliveryStatus,
  formatDurationAndAttempts,
  formatLastResponse,
} from '../wording/deliveries.ts';
import { writeDenialReason } from '../wording/webhooks.ts';

const TABLE_MIN_EM = 68;

interface EventDeliveriesProps {
  deliveries: readonly AccountDelivery[];
  /** Label of the event. */
  label: string;
}

/** The deliveries of an event, one for each webhook that matched it, sorted by the webhook's name. */
export function EventDeliveries({ deliveries, label }: EventDeliveriesProps) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  const sorted = deliveries.toSorted((one, other) => one.webhook_name.localeCompare(other.webhook_name));
  const name = `Webhooks notified of ${label}`;
  if (isNarrow)
    return (
      <ul className={classes.cards} aria-label={name}>
        {sorted.map((delivery) => (
          <li key={delivery.id} className={classes.card}>
            <div className={classes.line}>
              <WebhookLink delivery={delivery} />
              <State delivery={delivery} />
            </div>
            <div className={`${classes.line} ${classes.dimmed}`}>
              <span>{formatLastResponse(delivery)}</span>
              <span>{formatDurationAndAttempts(delivery)}</span>
            </div>
            <div className={classes.line}>
              <span className={classes.dimmed}>
                <Timestamp at={delivery.created_at} format="exact" />
              </span>
              <RedeliverCell delivery={delivery} />
            </div>
          </li>
        ))}
      </ul>
    );
  return (
    <Table className={classes.table ?? ''} verticalSpacing={4} aria-label={name}>
      <thead>
        <tr>
          <th>Webhook</th>
          <th>Status</th>
          <th>Last response</th>
          <th className={classes.number ?? ''}>Took</th>
          <th className={classes.number ?? ''}>Attempts</th>
          <th>When</th>
          <th>
            <VisuallyHidden>Redeliver</VisuallyHidden>
          </th>
        </tr>
      </thead>
      <tbody>
        {sorted.map((delivery) => (
          <tr key={delivery.id}>
            <td style={{ overflowWrap: 'anywhere' }}>
              <WebhookLink delivery={delivery} />
            </td>
            <td>
              <State delivery={delivery} />
            </td>
            <td>{formatLastResponse(delivery)}</td>
            <td className={classes.number ?? ''}>{formatDeliveryDuration(delivery)}</td>
            <td className={classes.number ?? ''}>{delivery.attempt_count}</td>
            <td>
              <Timestamp at={delivery.created_at} format="exact" />
            </td>
            <td className={classes.number ?? ''}>
              <RedeliverCell delivery={delivery} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function State({ delivery }: { delivery: AccountDelivery }) {
  return <StatusBadge tone={deliveryTone(delivery)}>{formatDeliveryStatus(delivery)}</StatusBadge>;
}

/** Link to the delivery, labelled with the name of its webhook. A deleted webhook has no pages. */
function WebhookLink({ delivery }: { delivery: AccountDelivery }) {
  const account = useAccount();
  const { id, subscription_id, webhook_name, webhook_state } = delivery;
  if (webhook_state === 'deleted')
    return (
      <span>
        {webhook_name}{' '}
        <Text span size="xs" c="dimmed">
          deleted
        </Text>
      </span>
    );
  return (
    <span>
      <Anchor component={Link} to={deliveryPath(account.id, subscription_id, id)} size="sm">
        {webhook_name}
        <VisuallyHidden>: the delivery</VisuallyHidden>
      </Anchor>
      {webhook_state === 'inactive' && (
        <Text span size="xs" c="dimmed">
          {' '}
          switched off
        </Text>
      )}
    </span>
  );
}

function RedeliverCell({ delivery }: { delivery: AccountDelivery }) {
  const account = useAccount();
  if (delivery.webhook_state === 'deleted') return null;
  return (
    <RedeliverButton
      webhook={{ accountId: account.id, webhookId: delivery.subscription_id }}
      delivery={delivery}
      isActive={delivery.webhook_state === 'active'}
      denialReason={writeDenialReason(account)}
      webhookName={delivery.webhook_name}
    />
  );
}
