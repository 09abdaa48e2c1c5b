import { Button, Text } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useId, useState } from 'react';
import type { Attempt } from '../api/types.ts';
import { Moment, StatusBadge } from '../components/state.tsx';
import { answerAdvice } from '../words/deliveries.ts';
import { statusTone, statusWords } from '../words/http-status.ts';
import { durationWords } from '../words/time.ts';
import classes from './attempt-timeline.module.css';
import { Exchange } from './exchange.tsx';

const TRIGGER_WORDS = { automatic: 'automatic', manual: 'sent again by hand' };

/** One attempt: how it went, and, opened, what went over the wire. */
export function AttemptCard({ attempt, isOpenAtFirst }: { attempt: Attempt; isOpenAtFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const exchangeId = useId();
  const { number, http_status_code, error } = attempt;
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  const advice = error === null ? null : answerAdvice(http_status_code, error.code);
  return (
    <li className={classes.attempt} data-good={error === null}>
      <div className={classes.head}>
        <h3 className={classes.title}>Attempt {number}</h3>
        <StatusBadge tone={error === null ? statusTone(http_status_code) : 'bad'}>
          {statusWords(http_status_code)}
        </StatusBadge>
        <Moment at={attempt.started_at} format="full" />
        <span>took {durationWords(attempt.duration_ms)}</span>
        <Text span size="sm" c="dimmed">
          {TRIGGER_WORDS[attempt.trigger]}
        </Text>
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={isOpen}
          aria-controls={exchangeId}
          aria-label={`Request and answer of attempt ${number}`}
          leftSection={<Chevron size={14} aria-hidden />}
          onClick={() => setOpen(!isOpen)}
        >
          Request and answer
        </Button>
      </div>
      {error !== null && (
        <Text size="sm" mt={2} style={{ overflowWrap: 'anywhere' }}>
          {error.message}{' '}
          {advice !== null && (
            <Text span c="dimmed">
              {advice}
            </Text>
          )}
        </Text>
      )}
      <div id={exchangeId} hidden={!isOpen}>
        {isOpen && <Exchange attempt={attempt} />}
      </div>
    </li>
  );
}
