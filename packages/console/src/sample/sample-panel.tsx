import { Button, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import type { EventType } from '@runhook/contract/event-types';
import { sampleEvent } from '@runhook/contract/samples';
import { useMutation, useQuery } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useId, useState } from 'react';
import { serviceStateQuery } from '../api/service-state.ts';
import type { EndpointTest } from '../api/types.ts';
import { Problem } from '../components/page.tsx';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import { EventSelect, TestResult } from './endpoint-test.tsx';
import classes from './sample-panel.module.css';

interface SamplePanelProps {
  accountId: number;
  /** The webhook; its id is null until it is saved. */
  webhook: { id: string | null; name: string };
  /** Name of the format. */
  format: string;
  /** Whether the webhook has an endpoint to send a sample to. */
  hasEndpoint: boolean;
  eventType: EventType;
  onEventType: (type: EventType) => void;
  /** Sends a sample. Returns null if the form is invalid, and the form then shows the problems. */
  send: (type: EventType) => Promise<EndpointTest | null>;
  /** Additional note about the sample. */
  note: string | null;
}

// With the formats and the previews, which only this page needs.
const MessagePreview = lazy(() => import('../message-preview/message-preview.tsx'));

/** Selects an event, describes it, shows its message, and sends it to the endpoint. */
export function SamplePanel({
  accountId,
  webhook,
  format,
  hasEndpoint,
  eventType,
  onEventType,
  send,
  note,
}: SamplePanelProps) {
  const headingId = useId();
  const test = useMutation({ mutationFn: send, gcTime: 0 });
  const serviceState = useQuery(serviceStateQuery(accountId));
  const [now] = useState(() => new Date());
  const event = sampleEvent(eventType, { accountId, eventId: EVENT_ID, now, format });
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
        <Suspense fallback={<Skeleton height={HEIGHT_MAX} role="status" aria-label="Loading the sample" />}>
          <MessagePreview
            format={format}
            event={event}
            subscription={{ id: webhook.id ?? WEBHOOK_ID, name: webhook.name }}
            publicUrl={serviceState.data?.public_url ?? null}
          />
        </Suspense>
        {hasEndpoint && (
          <Group gap="sm">
            <Button variant="light" loading={test.isPending} onClick={() => test.mutate(eventType)}>
              Send this event now
            </Button>
            <Text size="xs" c="dimmed" flex={1} miw={200}>
              To the endpoint in the form. {note}
            </Text>
          </Group>
        )}
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

/** A form with the panel next to it, or below it on narrow screens. */
export function FormWithPanel({ form, panel }: { form: ReactNode; panel: ReactNode }) {
  return (
    <div className={classes.columns}>
      {form}
      {panel}
    </div>
  );
}
