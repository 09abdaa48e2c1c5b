import { Text } from '@mantine/core';
import type { Attempt } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { formatJson, readableBody } from '../wording/code.ts';
import { listPhases } from '../wording/deliveries.ts';
import { formatDuration } from '../wording/time.ts';
import classes from './exchange.module.css';

const HEIGHT_MAX = 280;

interface ExchangeProps {
  /** Owner of the exchange, for labels: "of attempt 1". */
  labelSuffix: string;
  exchange: Pick<
    Attempt,
    'request_headers' | 'response_headers' | 'response_body' | 'response_truncated' | 'timings'
  >;
  /** Method, URL and body; omitted if the page shows them elsewhere. */
  request?: { line: string; body: string };
  note: string;
}

/** Request, response, and the duration of each phase. */
export function Exchange({ labelSuffix, exchange, request, note }: ExchangeProps) {
  const { request_headers, response_headers, response_body, response_truncated, timings } = exchange;
  return (
    <>
      {timings !== null && <Phases timings={timings} />}
      <div className={classes.exchange}>
        <div className={classes.column}>
          <CodeBlock
            label={`Request headers ${labelSuffix}`}
            code={(request ? `${request.line}\n` : '') + headerLines(request_headers)}
            wrap
            heightMax={HEIGHT_MAX}
          />
          {request !== undefined && (
            <CodeBlock
              label={`Request body ${labelSuffix}`}
              code={formatJson(request.body) ?? request.body}
              copyValue={request.body}
              wrap
              heightMax={HEIGHT_MAX}
            />
          )}
          <Text size="xs" c="dimmed">
            {note}
          </Text>
        </div>
        <div className={classes.column}>
          {response_headers === null ? (
            <Text size="sm">No response was received.</Text>
          ) : (
            <>
              <CodeBlock
                label={`Response headers ${labelSuffix}`}
                code={headerLines(response_headers)}
                wrap
                heightMax={HEIGHT_MAX}
              />
              <ResponseBody
                labelSuffix={labelSuffix}
                body={response_body ?? ''}
                isTruncated={response_truncated}
              />
            </>
          )}
        </div>
      </div>
    </>
  );
}

function Phases({ timings }: { timings: NonNullable<Attempt['timings']> }) {
  return (
    <dl className={classes.phases} aria-label="Timings">
      {listPhases(timings).map(({ name, ms }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formatDuration(ms)}</dd>
        </div>
      ))}
    </dl>
  );
}

function ResponseBody({
  labelSuffix,
  body,
  isTruncated,
}: {
  labelSuffix: string;
  body: string;
  isTruncated: boolean;
}) {
  if (body === '')
    return (
      <Text size="sm">
        {isTruncated ? 'The connection was closed before the body began.' : 'The response had no body.'}
      </Text>
    );
  const readable = readableBody(body);
  if (readable.kind === 'binary') return <Text size="sm">Binary response (not shown)</Text>;
  const label = `Response body ${labelSuffix}`;
  return (
    <>
      <CodeBlock label={label} code={readable.text} copyValue={body} wrap heightMax={HEIGHT_MAX} />
      {readable.kind === 'json' && (
        <Text size="xs" c="dimmed">
          Formatted. Copying gives the original text.
        </Text>
      )}
      {isTruncated && (
        <Text size="sm">
          The body is incomplete: it exceeds the size that is stored, or the connection was closed before its
          end.
        </Text>
      )}
    </>
  );
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}
