import { Text, Title } from '@mantine/core';
import type { DeliveryDetail } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { prettyJson } from '../words/code.ts';

const HEIGHT_MAX = 520;

/** What was sent, laid out for reading; copied byte by byte. */
export function PayloadSection({ delivery }: { delivery: DeliveryDetail }) {
  const { payload } = delivery;
  return (
    <section aria-labelledby="payload">
      <Title order={2} size="h4" id="payload" mb="sm">
        Payload
      </Title>
      {payload === null ? (
        <Text size="sm">The payload is no longer kept: its event has left the log.</Text>
      ) : (
        <>
          <CodeBlock
            label="Request body"
            code={prettyJson(payload) ?? payload}
            copyValue={payload}
            wrap
            heightMax={HEIGHT_MAX}
          />
          <Text size="xs" c="dimmed" mt={4}>
            Laid out for reading. Copying gives the exact bytes that were sent, which the signature is made
            over.
          </Text>
        </>
      )}
    </section>
  );
}
