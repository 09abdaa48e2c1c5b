import { Button, Text, Title } from '@mantine/core';
import { formatByName } from '@runhook/contract/formats';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useId, useState } from 'react';
import type { Attempt, DeliveryDetail } from '../api/types.ts';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { failureAdvice, toAttemptDetails } from '../wording/deliveries.ts';
import { formatStatus, statusTone } from '../wording/http-status.ts';
import { formatDuration } from '../wording/time.ts';
import classes from './attempts.module.css';
import { Exchange } from './exchange.tsx';

/** All attempts, newest first. */
export function AttemptTimeline({ delivery }: { delivery: DeliveryDetail }) {
  const { attempts, status } = delivery;
  // Attempts that arrive later stay collapsed, so that they do not move the content that the user reads.
  const [initialNewest] = useState(() => attempts.at(-1)?.number);
  return (
    <section aria-labelledby="attempts">
      <Title order={2} size="h4" id="attempts" mb="sm">
        Attempts
      </Title>
      {attempts.length === 0 ? (
        <Text size="sm">
          {status === 'pending'
            ? 'None yet. The first one appears here automatically.'
            : 'No attempts were made.'}
        </Text>
      ) : (
        <ol className={classes.line} reversed aria-label="Attempts, newest first">
          {attempts.toReversed().map((attempt) => (
            <AttemptCard
              key={attempt.number}
              attempt={attempt}
              isInitiallyOpen={attempt.number === initialNewest}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

/** @param format undefined for the payload of the contract */
function describeBody(format: string | undefined): string {
  return format === undefined
    ? 'The body is the payload below, the same bytes in every attempt.'
    : `The body is the message in the format ${formatLabel(format)}. That of the latest attempt is below.`;
}

function formatLabel(name: string): string {
  return formatByName(name)?.label ?? name;
}

const TRIGGER_LABELS = { automatic: 'automatic', manual: 'resent manually' };

/** An attempt: its result and, expanded, its request and response. */
function AttemptCard({ attempt, isInitiallyOpen }: { attempt: Attempt; isInitiallyOpen: boolean }) {
  const [isOpen, setOpen] = useState(isInitiallyOpen);
  const exchangeId = useId();
  const { number, http_status_code, error } = attempt;
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  const advice = error && failureAdvice(http_status_code, error.code, toAttemptDetails(attempt));
  return (
    <li className={classes.attempt} data-good={error === null}>
      <div className={classes.head}>
        <h3 className={classes.title}>Attempt {number}</h3>
        <StatusBadge tone={error === null ? statusTone(http_status_code) : 'bad'}>
          {formatStatus(http_status_code, error?.code ?? null)}
        </StatusBadge>
        <Timestamp at={attempt.started_at} format="full" />
        {attempt.duration_ms !== null && <span>took {formatDuration(attempt.duration_ms)}</span>}
        <Text span size="sm" c="dimmed">
          {TRIGGER_LABELS[attempt.trigger]}
          {attempt.format !== undefined && `, format ${formatLabel(attempt.format)}`}
        </Text>
        <Button
          size="compact-xs"
          variant="subtle"
          aria-expanded={isOpen}
          aria-controls={exchangeId}
          aria-label={`Request and response of attempt ${number}`}
          leftSection={<Chevron size={14} aria-hidden />}
          onClick={() => setOpen(!isOpen)}
        >
          Request and response
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
        {isOpen && (
          <Exchange
            labelSuffix={`of attempt ${number}`}
            exchange={attempt}
            note={`${describeBody(attempt.format)} The log does not store signatures.`}
          />
        )}
      </div>
    </li>
  );
}
