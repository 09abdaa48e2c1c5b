import { VisuallyHidden } from '@mantine/core';
import { memo } from 'react';
import { Link } from 'react-router';
import type { Delivery } from '../../api/types.ts';
import { StatusBadge, Timestamp } from '../../components/state.tsx';
import { Table, TableScroll } from '../../components/table.tsx';
import { deliveryPath } from '../../paths.ts';
import { useAccount } from '../../session/session.ts';
import {
  deliveryTone,
  formatDeliveryDuration,
  formatDeliveryStatus,
  formatDurationAndAttempts,
  formatJob,
  formatLastResponse,
} from '../../wording/deliveries.ts';
import { EVENT_TEXTS } from '../../wording/webhooks.ts';
import classes from './delivery-rows.module.css';

interface DeliveryRowsProps {
  rows: readonly Delivery[];
  /** Ids of the rows that the latest refresh with new rows added. */
  newIds: ReadonlySet<string>;
}

const HEADINGS = ['Status', 'Event', 'Job', 'Run', 'When', 'Last response', 'Took', 'Attempts'];
/** CSS classes of columns: numbers are aligned right, and narrower screens hide the duration. */
const HEADING_CLASSES: Record<string, string> = {
  Took: `${classes.number} ${classes.wideOnly}`,
  Attempts: classes.number ?? '',
};

/** The log as a table, on wide screens. */
export function DeliveryTable({ rows, newIds }: DeliveryRowsProps) {
  return (
    <TableScroll minWidth={640}>
      <Table className={classes.table ?? ''} verticalSpacing={5} aria-label="Deliveries, newest first">
        <thead>
          <tr>
            {HEADINGS.map((heading) => (
              <th key={heading} className={HEADING_CLASSES[heading] ?? ''}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((delivery) => (
            <DeliveryRow key={delivery.id} delivery={delivery} isNew={newIds.has(delivery.id)} />
          ))}
        </tbody>
      </Table>
    </TableScroll>
  );
}

interface DeliveryItemProps {
  delivery: Delivery;
  isNew: boolean;
}

/** Memoized, because the log is read again with every new delivery. */
const DeliveryRow = memo(function DeliveryRow({ delivery, isNew }: DeliveryItemProps) {
  return (
    <tr className={classes.row ?? ''} data-arrived={isNew}>
      <td>
        <StatusBadge tone={deliveryTone(delivery)}>{formatDeliveryStatus(delivery)}</StatusBadge>
      </td>
      <td>
        <DeliveryLink delivery={delivery} />
      </td>
      <td>
        <div className={classes.job} title={delivery.job_name}>
          {formatJob(delivery)}
        </div>
      </td>
      <td>{delivery.run_id}</td>
      <td>
        <Timestamp at={delivery.created_at} format="exact" />
      </td>
      <td>{formatLastResponse(delivery)}</td>
      <td className={HEADING_CLASSES.Took ?? ''}>{formatDeliveryDuration(delivery)}</td>
      <td className={HEADING_CLASSES.Attempts ?? ''}>{delivery.attempt_count}</td>
    </tr>
  );
});

/** The log as cards, on narrow screens. */
export function DeliveryCards({ rows, newIds }: DeliveryRowsProps) {
  return (
    <ul className={classes.cards} aria-label="Deliveries, newest first">
      {rows.map((delivery) => (
        <DeliveryCard key={delivery.id} delivery={delivery} isNew={newIds.has(delivery.id)} />
      ))}
    </ul>
  );
}

const DeliveryCard = memo(function DeliveryCard({ delivery, isNew }: DeliveryItemProps) {
  return (
    <li className={classes.card} data-arrived={isNew}>
      <div className={classes.line}>
        <DeliveryLink delivery={delivery} />
        <StatusBadge tone={deliveryTone(delivery)}>{formatDeliveryStatus(delivery)}</StatusBadge>
      </div>
      <div className={classes.line}>
        <span>
          {formatJob(delivery)}, run {delivery.run_id}
        </span>
        <Timestamp at={delivery.created_at} format="exact" />
      </div>
      <div className={`${classes.line} ${classes.dimmed}`}>
        <span>{formatLastResponse(delivery)}</span>
        <span>{formatDurationAndAttempts(delivery)}</span>
      </div>
    </li>
  );
});

/** Link to a delivery. It covers the whole row or card. */
function DeliveryLink({ delivery }: { delivery: Delivery }) {
  const account = useAccount();
  return (
    <Link to={deliveryPath(account.id, delivery.subscription_id, delivery.id)} className={classes.link ?? ''}>
      {EVENT_TEXTS[delivery.event_type].label}
      <VisuallyHidden>
        , run {delivery.run_id}, {formatDeliveryStatus(delivery).toLowerCase()}
      </VisuallyHidden>
    </Link>
  );
}
