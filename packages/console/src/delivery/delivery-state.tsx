import { Group, Text, VisuallyHidden } from '@mantine/core';
import type { Delivery } from '../api/types.ts';
import { Moment, StatusBadge, useNow } from '../components/state.tsx';
import { deliveryTone, deliveryWords, nextAttemptWords, stateSentence } from '../words/deliveries.ts';

/** How it stands, why, and what comes next. */
export function DeliveryState({ delivery }: { delivery: Delivery }) {
  const { next_attempt_at, completed_at } = delivery;
  return (
    <Group gap="xs">
      <StatusBadge tone={deliveryTone(delivery)}>{deliveryWords(delivery)}</StatusBadge>
      <Text size="sm" component="div" style={{ overflowWrap: 'anywhere', minWidth: 0 }}>
        {stateSentence(delivery)}{' '}
        {delivery.status === 'pending' && next_attempt_at !== null && (
          <Countdown at={next_attempt_at} attemptCount={delivery.attempt_count} />
        )}
        {completed_at !== null && <Moment at={completed_at} />}
      </Text>
      <VisuallyHidden role="status">
        {deliveryWords(delivery)}, {delivery.attempt_count} attempts so far
      </VisuallyHidden>
    </Group>
  );
}

/** Counts down for the eye only: read out every second it would drown everything else. */
function Countdown({ at, attemptCount }: { at: string; attemptCount: number }) {
  const nowMs = useNow(1_000);
  return (
    <>
      {nextAttemptWords(at, attemptCount, nowMs)} (<Moment at={at} format="full" />)
    </>
  );
}
