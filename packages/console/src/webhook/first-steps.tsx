import { Anchor, Button, Group, Stack, Text, Title } from '@mantine/core';
import type { EventType } from '@runhook/contract/event-types';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'react-router';
import { jobSearchQuery, testEndpoint, type WebhookKey } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { signaturePath, webhookHelpPath } from '../paths.ts';
import { EventSelect, TestResult } from '../sample/endpoint-test.tsx';
import { consoleUrl } from '../served-page.ts';
import { createRunSample } from '../wording/code.ts';
import { EVENT_TEXTS } from '../wording/webhooks.ts';

/** A single mutation for all buttons that test the endpoint, so that one test runs at a time. */
export function useTestEndpoint(key: WebhookKey) {
  return useMutation({ mutationFn: (type: EventType) => testEndpoint(key, type) });
}

type Test = ReturnType<typeof useTestEndpoint>;

/** Event type of the first sample. The user can select another one afterwards. */
const DEFAULT_TYPE: EventType = 'job.run.completed';

export function TestButton({ test, reason }: { test: Test; reason: string | null }) {
  return (
    <GuardedButton
      reason={reason}
      variant="default"
      loading={test.isPending}
      onClick={() => test.mutate(DEFAULT_TYPE)}
    >
      Test Endpoint
    </GuardedButton>
  );
}

/** Result of the test, and the selection of the next sample. */
export function TestOutcome({ test }: { test: Test }) {
  const [type, setType] = useState(DEFAULT_TYPE);
  const retest = () => test.mutate(type);
  if (test.isError)
    return <Problem title="The endpoint was not tested" error={test.error} onRetry={retest} />;
  if (test.data === undefined && !test.isPending) return null;
  return (
    <Stack gap="sm" component="section" aria-label="Test of the endpoint">
      <Group gap="sm" align="flex-end">
        <EventSelect value={type} onChange={setType} />
        <Button variant="default" loading={test.isPending} onClick={retest}>
          Send this event now
        </Button>
      </Group>
      {test.data && <TestResult test={test.data} onClose={() => test.reset()} />}
    </Stack>
  );
}

interface EmptyLogProps {
  accountId: number;
  webhook: Subscription;
  testButton: ReactNode;
}

/** Shown instead of an empty log: how to get the first delivery. */
export function EmptyLog({ accountId, webhook, testButton }: EmptyLogProps) {
  const jobs = useQuery(jobSearchQuery(accountId, ''));
  const [runId] = useState(() => Math.floor(Date.now() / 1_000));
  const jobId = webhook.job_ids[0] === undefined ? jobs.data?.data[0]?.id : Number(webhook.job_ids[0]);
  const events = webhook.event_types.map((type) => `“${EVENT_TEXTS[type].label}”`).join(' or ');
  return (
    <Stack gap="sm" maw={720}>
      <Title order={3} size="h5">
        No deliveries yet
      </Title>
      <Text size="sm">
        {webhook.active
          ? `The next event ${events} of ${describeJobScope(webhook)} is delivered. The delivery appears here automatically, with every attempt.`
          : 'This webhook is switched off. Nothing is delivered until it is switched on.'}
      </Text>
      <Text size="sm">
        To check the endpoint, send it a signed sample. The sample is not part of this log.
      </Text>
      <div>{testButton}</div>
      <HelpLinks accountId={accountId} webhookId={webhook.id} />
      <Text size="sm">For a real delivery, report a run with a token that may report runs:</Text>
      <CodeBlock
        label="Report a run"
        code={createRunSample({
          baseUrl: new URL(consoleUrl(''), location.href).href.replace(/\/$/, ''),
          accountId,
          jobId: jobId ?? 'JOB_ID',
          runId,
          eventTypes: webhook.event_types,
        })}
      />
    </Stack>
  );
}

/** Links to the code of a receiver, and to the page that checks signatures. */
export function HelpLinks({ accountId, webhookId }: { accountId: number; webhookId: string }) {
  return (
    <Text size="sm">
      <Anchor component={Link} to={webhookHelpPath(accountId, webhookId)} underline="always" inherit>
        How to receive deliveries
      </Anchor>
      : a receiver to copy, filled in for this webhook.{' '}
      <Anchor component={Link} to={signaturePath(accountId, webhookId)} underline="always" inherit>
        Check a signature
      </Anchor>{' '}
      that your endpoint rejects.
    </Text>
  );
}

function describeJobScope({ job_ids }: Subscription): string {
  if (job_ids.length === 0) return 'any job';
  return job_ids.length === 1 ? 'its job' : 'one of its jobs';
}
