import { Alert, Code, Stack, Text, Title } from '@mantine/core';
import { IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { jobSearchQuery, testEndpoint, type WebhookKey } from '../api/subscriptions.ts';
import type { Subscription, Verification } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { ownUrl } from '../served-page.ts';
import { runSample } from '../words/code.ts';
import { verificationWords } from '../words/deliveries.ts';
import { EVENT_WORDS } from '../words/webhooks.ts';

/** One test at a time, wherever it was started from. */
export function useTestEndpoint(key: WebhookKey) {
  return useMutation({ mutationFn: () => testEndpoint(key) });
}

type EndpointTest = ReturnType<typeof useTestEndpoint>;

export function TestButton({ test, reason }: { test: EndpointTest; reason: string | null }) {
  return (
    <GuardedButton reason={reason} variant="default" loading={test.isPending} onClick={() => test.mutate()}>
      Test Endpoint
    </GuardedButton>
  );
}

/** What the endpoint answered, in words. */
export function TestOutcome({ test, url }: { test: EndpointTest; url: string }) {
  if (test.isError)
    return <Problem title="The endpoint was not tested" error={test.error} onRetry={() => test.mutate()} />;
  if (test.data === undefined) return null;
  return <Answer verification={test.data} url={url} onClose={() => test.reset()} />;
}

function Answer({
  verification,
  url,
  onClose,
}: {
  verification: Verification;
  url: string;
  onClose: () => void;
}) {
  const { isGood, title, advice } = verificationWords(verification);
  return (
    <Alert
      color={isGood ? 'green' : 'red'}
      role="status"
      title={title}
      icon={isGood ? <IconCircleCheck aria-hidden /> : <IconCircleX aria-hidden />}
      withCloseButton
      closeButtonLabel="Close the answer"
      onClose={onClose}
    >
      {advice !== null && (
        <Text size="sm" mb={4}>
          {advice}
        </Text>
      )}
      <Text size="sm">
        A signed sample was sent to <Code style={{ overflowWrap: 'anywhere' }}>{url}</Code>. Nothing of it is
        logged.
      </Text>
    </Alert>
  );
}

interface EmptyLogProps {
  accountId: number;
  webhook: Subscription;
  testButton: ReactNode;
}

/** Before the first delivery: how it comes about. */
export function EmptyLog({ accountId, webhook, testButton }: EmptyLogProps) {
  const jobs = useQuery(jobSearchQuery(accountId, ''));
  const [runId] = useState(() => Math.floor(Date.now() / 1_000));
  const jobId = webhook.job_ids[0] === undefined ? jobs.data?.data[0]?.id : Number(webhook.job_ids[0]);
  const events = webhook.event_types.map((type) => `“${EVENT_WORDS[type].label}”`).join(' or ');
  return (
    <Stack gap="sm" maw={720}>
      <Title order={3} size="h5">
        Nothing was delivered yet
      </Title>
      <Text size="sm">
        {webhook.active
          ? `The first delivery comes with the next event ${events} of ${jobWordsOf(webhook)}. It appears here by itself, with every attempt.`
          : 'This webhook is switched off. Nothing is delivered until it is switched on.'}
      </Text>
      <Text size="sm">
        To see whether the endpoint answers, send it a signed sample. It is not part of this log.
      </Text>
      <div>{testButton}</div>
      <Text size="sm">For a real delivery, report a run, with a token that may report runs:</Text>
      <CodeBlock
        label="Report a run"
        code={runSample({
          baseUrl: new URL(ownUrl(''), location.href).href.replace(/\/$/, ''),
          accountId,
          jobId: jobId ?? 'JOB_ID',
          runId,
          eventTypes: webhook.event_types,
        })}
      />
    </Stack>
  );
}

function jobWordsOf({ job_ids }: Subscription): string {
  if (job_ids.length === 0) return 'any job';
  return job_ids.length === 1 ? 'its job' : 'one of its jobs';
}
