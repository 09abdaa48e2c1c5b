import { Button, Text, Title } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useId, useState } from 'react';
import type { Attempt, DeliveryDetail } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { Moment, StatusBadge } from '../components/state.tsx';
import { readableBody } from '../words/code.ts';
import { answerAdvice } from '../words/deliveries.ts';
import { statusTone, statusWords } from '../words/http-status.ts';
import { durationWords } from '../words/time.ts';
import classes from './attempts.module.css';

/** Every attempt, newest first: the last one says how it stands. */
export function AttemptTimeline({ delivery }: { delivery: DeliveryDetail }) {
  const { attempts, status } = delivery;
  // Those that come while somebody reads stay closed, and push nothing away.
  const [newestAtFirst] = useState(() => attempts.at(-1)?.number);
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
            <AttemptCard
              key={attempt.number}
              attempt={attempt}
              isOpenAtFirst={attempt.number === newestAtFirst}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

const TRIGGER_WORDS = { automatic: 'automatic', manual: 'sent again by hand' };

/** One attempt: how it went, and, opened, what went over the wire. */
function AttemptCard({ attempt, isOpenAtFirst }: { attempt: Attempt; isOpenAtFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const exchangeId = useId();
  const { number, http_status_code, error } = attempt;
  const Chevron = isOpen ? IconChevronDown : IconChevronRight;
  const advice =
    error &&
    answerAdvice(http_status_code, error.code, {
      errorMessage: error.message,
      responseHeaders: attempt.response_headers,
      responseBody: attempt.response_body,
    });
  return (
    <li className={classes.attempt} data-good={error === null}>
      <div className={classes.head}>
        <h3 className={classes.title}>Attempt {number}</h3>
        <StatusBadge tone={error === null ? statusTone(http_status_code) : 'bad'}>
          {statusWords(http_status_code, error?.code ?? null)}
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

const HEIGHT_MAX = 280;

/** What was sent, but for its body, which is the payload each time, and what came back. */
function Exchange({ attempt }: { attempt: Attempt }) {
  const { number, request_headers, response_headers, response_body, response_truncated } = attempt;
  return (
    <div className={classes.exchange}>
      <div className={classes.column}>
        <CodeBlock
          label={`Request headers of attempt ${number}`}
          code={headerLines(request_headers)}
          wrap
          heightMax={HEIGHT_MAX}
        />
        <Text size="xs" c="dimmed">
          The body is the payload below, the same bytes each time. Signatures are not kept in the log.
        </Text>
      </div>
      <div className={classes.column}>
        {response_headers === null ? (
          <Text size="sm">No answer came back.</Text>
        ) : (
          <>
            <CodeBlock
              label={`Response headers of attempt ${number}`}
              code={headerLines(response_headers)}
              wrap
              heightMax={HEIGHT_MAX}
            />
            <ResponseBody number={number} body={response_body ?? ''} isTruncated={response_truncated} />
          </>
        )}
      </div>
    </div>
  );
}

function ResponseBody({ number, body, isTruncated }: { number: number; body: string; isTruncated: boolean }) {
  if (body === '') return <Text size="sm">The answer had no body.</Text>;
  const readable = readableBody(body);
  if (readable.kind === 'binary') return <Text size="sm">The body of the answer is no text.</Text>;
  const label = `Response body of attempt ${number}`;
  return (
    <>
      <CodeBlock label={label} code={readable.text} copyValue={body} wrap heightMax={HEIGHT_MAX} />
      {readable.kind === 'json' && (
        <Text size="xs" c="dimmed">
          Laid out for reading. Copying gives it as it came.
        </Text>
      )}
      {isTruncated && <Text size="sm">The body was longer. Only its beginning is kept.</Text>}
    </>
  );
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}
