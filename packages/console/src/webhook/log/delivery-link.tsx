import { VisuallyHidden } from '@mantine/core';
import { Link } from 'react-router';
import type { Delivery } from '../../api/types.ts';
import { deliveryPath } from '../../paths.ts';
import { useAccount } from '../../session/session.ts';
import { deliveryWords } from '../../words/deliveries.ts';
import { EVENT_WORDS } from '../../words/webhooks.ts';
import classes from './delivery-rows.module.css';

/** Opens a delivery; all of its row or card is the link's. */
export function DeliveryLink({ delivery }: { delivery: Delivery }) {
  const account = useAccount();
  return (
    <Link to={deliveryPath(account.id, delivery.subscription_id, delivery.id)} className={classes.link ?? ''}>
      {EVENT_WORDS[delivery.event_type].label}
      <VisuallyHidden>
        , run {delivery.run_id}, {deliveryWords(delivery).toLowerCase()}
      </VisuallyHidden>
    </Link>
  );
}
