import { Text, Title } from '@mantine/core';
import type { DeliveryDetail } from '../api/types.ts';
import { AttemptCard } from './attempt-card.tsx';
import classes from './attempt-timeline.module.css';

/** Every attempt, newest first: the last one says how it stands. */
export function AttemptTimeline({ delivery }: { delivery: DeliveryDetail }) {
  const { attempts, status } = delivery;
  const newest = attempts.at(-1)?.number;
  return (
    <section aria-labelledby="attempts">
      <Title order={2} size="h4" id="attempts" mb="sm">
        Attempts
      </Title>
      {attempts.length === 0 ? (
        <Text size="sm">
          {status === 'pending' ? 'None yet. The first one appears here by itself.' : 'None was made.'}
        </Text>
      ) : (
        <ol className={classes.line} reversed aria-label="Attempts, newest first">
          {attempts.toReversed().map((attempt) => (
            <AttemptCard key={attempt.number} attempt={attempt} isOpenAtFirst={attempt.number === newest} />
          ))}
        </ol>
      )}
    </section>
  );
}
