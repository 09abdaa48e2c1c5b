import type { Delivery } from '../../api/types.ts';
import { Moment, StatusBadge } from '../../components/state.tsx';
import {
  attemptsWords,
  deliveryTone,
  deliveryWords,
  durationOf,
  jobWords,
  lastAnswerWords,
} from '../../words/deliveries.ts';
import { DeliveryLink } from './delivery-link.tsx';
import classes from './delivery-rows.module.css';

/** The log at the width of a phone. */
export function DeliveryCards({
  rows,
  arrived,
}: {
  rows: readonly Delivery[];
  arrived: ReadonlySet<string>;
}) {
  return (
    <ul className={classes.cards} aria-label="Deliveries, newest first">
      {rows.map((delivery) => (
        <li key={delivery.id} className={classes.card} data-arrived={arrived.has(delivery.id)}>
          <div className={classes.line}>
            <DeliveryLink delivery={delivery} />
            <StatusBadge tone={deliveryTone(delivery)}>{deliveryWords(delivery)}</StatusBadge>
          </div>
          <div className={classes.line}>
            <span>
              {jobWords(delivery)}, run {delivery.run_id}
            </span>
            <Moment at={delivery.created_at} />
          </div>
          <div className={`${classes.line} ${classes.dimmed}`}>
            <span>{lastAnswerWords(delivery)}</span>
            <span>
              {delivery.duration_ms === null ? '' : `${durationOf(delivery)}, `}
              {attemptsWords(delivery.attempt_count)}
            </span>
          </div>
        </li>
      ))}
    </ul>
  );
}
