import { Button, Group, Stack, Text, Title } from '@mantine/core';
import type { EventType } from '@runhook/contract/event-types';
import { renderPayload, sampleEvent } from '@runhook/contract/samples';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useId, useState } from 'react';
import type { EndpointTest } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { Problem } from '../components/page.tsx';
import { formatJson } from '../wording/code.ts';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import { EventSelect, TestResult } from './endpoint-test.tsx';
import classes from './sample-panel.module.css';

interface SamplePanelProps {
  accountId: number;
  /** The webhook; its id is null until it is saved. */
  webhook: { id: string | null; name: string };
  eventType: EventType;
  onEventType: (type: EventType) => void;
  /** Sends a sample. Returns null if the form is invalid, and the form then shows the problems. */
  send: (type: EventType) => Promise<EndpointTest | null>;
  /** Additional note about the sample. */
  note: string | null;
}

/** Selects an event, describes it, shows its payload, and sends it to the endpoint. */
export function SamplePanel({ accountId, webhook, eventType, onEventType, send, note }: SamplePanelProps) {
  const headingId = useId();
  const test = useMutation({ mutationFn: send, gcTime: 0 });
  const payload = useSamplePayload(accountId, webhook, eventType);
  const { fires, remark } = EVENT_TEXTS[eventType];
  return (
    <section className={classes.panel} aria-labelledby={headingId}>
      <Stack gap="sm">
        <Title order={2} size="h4" id={headingId}>
          What is sent
        </Title>
        <EventSelect value={eventType} onChange={onEventType} />
        <Text size="sm">
          {fires} {remark}
        </Text>
        <CodeBlock
          label="Sample payload"
          code={formatJson(payload) ?? payload}
          copyValue={payload}
          wrap
          heightMax={HEIGHT_MAX}
        />
        <Group gap="sm">
          <Button variant="light" loading={test.isPending} onClick={() => test.mutate(eventType)}>
            Send this event now
          </Button>
          <Text size="xs" c="dimmed" flex={1} miw={200}>
            To the endpoint in the form. {note}
          </Text>
        </Group>
        {test.isError && <Problem title="The event was not sent" error={test.error} />}
        {test.data && <TestResult test={test.data} onClose={() => test.reset()} />}
      </Stack>
    </section>
  );
}

const HEIGHT_MAX = 360;
/** Example id of an event; `WEBHOOK_ID` is that of a webhook. */
const EVENT_ID = 'wev_3MMmRDA51yZpHdvPtc0ABzoUBAh';
const WEBHOOK_ID = 'wsu_3MMmRIeb7hwtfgePeQ9Hc50jDdn';

/** Renders the payload with the functions that render deliveries. */
function useSamplePayload(
  accountId: number,
  { id, name }: SamplePanelProps['webhook'],
  eventType: EventType,
): string {
  const [now] = useState(() => new Date());
  const event = sampleEvent(eventType, { accountId, eventId: EVENT_ID, now });
  return renderPayload(event, { id: id ?? WEBHOOK_ID, name });
}

/** A form with the panel next to it, or below it on narrow screens. */
export function FormWithPanel({ form, panel }: { form: ReactNode; panel: ReactNode }) {
  return (
    <div className={classes.columns}>
      {form}
      {panel}
    </div>
  );
}
