import { Text } from '@mantine/core';
import type { Attempt } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import classes from './attempt-timeline.module.css';

const HEIGHT_MAX = 280;

/** What was sent, but for its body, which is the payload each time, and what came back. */
export function Exchange({ attempt }: { attempt: Attempt }) {
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
  return (
    <>
      <CodeBlock label={`Response body of attempt ${number}`} code={body} wrap heightMax={HEIGHT_MAX} />
      {isTruncated && <Text size="sm">The body was longer. Only its beginning is kept.</Text>}
    </>
  );
}

function headerLines(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}
