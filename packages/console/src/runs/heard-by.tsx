import { Anchor, Text, VisuallyHidden } from '@mantine/core';
import { Link } from 'react-router';
import type { AccountDelivery } from '../api/types.ts';
import { useIsNarrow } from '../components/page.tsx';
import { Moment, StatusBadge } from '../components/state.tsx';
import { Table } from '../components/table.tsx';
import { RedeliverButton } from '../delivery/payload.tsx';
import { deliveryPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import classes from '../webhook/log/delivery-rows.module.css';
import { deliveryTone, deliveryWords, durationOf, lastAnswerWords, triesWords } from '../words/deliveries.ts';
import { writeRefusal } from '../words/webhooks.ts';

const TABLE_MIN_EM = 68;

interface HeardByProps {
  deliveries: readonly AccountDelivery[];
  /** Label of the event. */
  label: string;
}

/** The webhooks to which an event was delivered, sorted by name, with the status of each delivery. */
export function HeardBy({ deliveries, label }: HeardByProps) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  const sorted = deliveries.toSorted((one, other) => one.webhook_name.localeCompare(other.webhook_name));
  const name = `Webhooks notified of ${label}`;
  if (isNarrow)
    return (
      <ul className={classes.cards} aria-label={name}>
        {sorted.map((delivery) => (
          <li key={delivery.id} className={classes.card}>
            <div className={classes.line}>
              <WebhookOf delivery={delivery} />
              <State delivery={delivery} />
            </div>
            <div className={`${classes.line} ${classes.dimmed}`}>
              <span>{lastAnswerWords(delivery)}</span>
              <span>{triesWords(delivery)}</span>
            </div>
            <div className={classes.line}>
              <span className={classes.dimmed}>
                <Moment at={delivery.created_at} format="exact" />
              </span>
              <Again delivery={delivery} />
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
              <WebhookOf delivery={delivery} />
            </td>
            <td>
              <State delivery={delivery} />
            </td>
            <td>{lastAnswerWords(delivery)}</td>
            <td className={classes.number ?? ''}>{durationOf(delivery)}</td>
            <td className={classes.number ?? ''}>{delivery.attempt_count}</td>
            <td>
              <Moment at={delivery.created_at} format="exact" />
            </td>
            <td className={classes.number ?? ''}>
              <Again delivery={delivery} />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function State({ delivery }: { delivery: AccountDelivery }) {
  return <StatusBadge tone={deliveryTone(delivery)}>{deliveryWords(delivery)}</StatusBadge>;
}

/** Link to the delivery, labelled with the name of its webhook. A deleted webhook has no pages. */
function WebhookOf({ delivery }: { delivery: AccountDelivery }) {
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

function Again({ delivery }: { delivery: AccountDelivery }) {
  const account = useAccount();
  if (delivery.webhook_state === 'deleted') return null;
  return (
    <RedeliverButton
      webhook={{ accountId: account.id, webhookId: delivery.subscription_id }}
      delivery={delivery}
      isActive={delivery.webhook_state === 'active'}
      refusal={writeRefusal(account)}
      among={delivery.webhook_name}
    />
  );
}
