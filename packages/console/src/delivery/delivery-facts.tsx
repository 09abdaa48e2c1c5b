import { Code, Group } from '@mantine/core';
import type { Delivery } from '../api/types.ts';
import { CopyButton } from '../components/copy.tsx';
import { Moment, StatusBadge } from '../components/state.tsx';
import classes from '../webhook/webhook-facts.module.css';
import { Fact } from '../webhook/webhook-facts.tsx';
import { durationOf, jobWords, lastAnswerWords } from '../words/deliveries.ts';
import { statusTone } from '../words/http-status.ts';
import { EVENT_WORDS } from '../words/webhooks.ts';

/** What is delivered, and its ids. */
export function DeliveryFacts({ delivery }: { delivery: Delivery }) {
  const answerTone = delivery.attempt_count === 0 ? 'neutral' : statusTone(delivery.http_status_code);
  return (
    <dl className={classes.facts}>
      <Fact name="Event">
        {EVENT_WORDS[delivery.event_type].label} <Code>{delivery.event_type}</Code>
      </Fact>
      <Fact name="Job">{jobWords(delivery)}</Fact>
      <Fact name="Created">
        <Moment at={delivery.created_at} format="full" />
      </Fact>
      <Fact name="Last answer">
        <Group gap="2px 8px">
          <StatusBadge tone={answerTone}>{lastAnswerWords(delivery)}</StatusBadge>
          {delivery.duration_ms !== null && <span>in {durationOf(delivery)}</span>}
        </Group>
      </Fact>
      <Id name="Delivery id" value={delivery.id} />
      <Id name="Event id" value={delivery.event_id} />
      <Id name="Job id" value={delivery.job_id} />
      <Id name="Run id" value={delivery.run_id} />
    </dl>
  );
}

function Id({ name, value }: { name: string; value: string }) {
  return (
    <Fact name={name}>
      <Group gap={6} wrap="nowrap" align="flex-start">
        <Code className={classes.code ?? ''}>{value}</Code>
        <CopyButton value={value} what={`the ${name.toLowerCase()}`} size="compact-xs" variant="subtle" />
      </Group>
    </Fact>
  );
}
