import { Alert, Code, Group, Radio, Stack, Text } from '@mantine/core';
import { type EventType, isEventType } from '@runhook/contract/event-types';
import { IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import type { EndpointTest } from '../api/types.ts';
import { CopiedText, CopyButton } from '../components/copy.tsx';
import { Exchange } from '../delivery/exchange.tsx';
import { describeVerification } from '../wording/deliveries.ts';
import { EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';

interface EventSelectProps {
  value: EventType;
  onChange: (type: EventType) => void;
}

/** Selects the event type of a sample. Any type can be selected, even if the webhook does not subscribe to it. */
export function EventSelect({ value, onChange }: EventSelectProps) {
  return (
    <Radio.Group
      label="Sample event"
      value={value}
      onChange={(chosen) => {
        if (isEventType(chosen)) onChange(chosen);
      }}
    >
      <Group gap="6px 16px" mt={4}>
        {EVENT_TYPES_IN_ORDER.map((type) => (
          <Radio key={type} value={type} label={EVENT_TEXTS[type].label} />
        ))}
      </Group>
    </Radio.Group>
  );
}

/** Result of a test: the status, what to check, and the whole exchange. */
export function TestResult({ test, onClose }: { test: EndpointTest; onClose: () => void }) {
  const { exchange, hmac_secret: secret } = test;
  const { isGood, title, advice } = describeVerification(test);
  return (
    <Stack gap="xs" style={{ minWidth: 0 }}>
      <Alert
        color={isGood ? 'green' : 'red'}
        role="status"
        title={title}
        icon={isGood ? <IconCircleCheck aria-hidden /> : <IconCircleX aria-hidden />}
        withCloseButton
        closeButtonLabel="Close the response"
        onClose={onClose}
      >
        {advice !== null && (
          <Text size="sm" mb={4}>
            {advice}
          </Text>
        )}
        <Text size="sm">
          A signed sample was sent to{' '}
          <Code style={{ overflowWrap: 'anywhere', whiteSpace: 'normal' }}>{exchange?.url}</Code>. It is not
          logged.
        </Text>
      </Alert>
      {exchange !== undefined && (
        <Exchange
          labelSuffix="of the test"
          exchange={exchange}
          request={{ line: `${exchange.method} ${exchange.url}`, body: exchange.request_body }}
          note="Signatures and the values of custom headers are masked. The body is formatted; copying gives the exact bytes."
        />
      )}
      {secret !== undefined && (
        <>
          <Text size="sm">
            This sample was signed with a temporary secret; the webhook gets its own when it is saved. An
            endpoint that already verifies signatures rejects this sample. To see it accepted, let the
            endpoint verify with:
          </Text>
          <div style={{ display: 'flex', flexWrap: 'wrap', gap: 8, alignItems: 'center' }}>
            <CopiedText testId="sample-secret">{secret}</CopiedText>
            <CopyButton value={secret} what="the secret of the sample" />
          </div>
        </>
      )}
    </Stack>
  );
}
