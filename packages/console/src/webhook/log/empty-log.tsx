import { Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { jobSearchQuery } from '../../api/subscriptions.ts';
import type { Subscription } from '../../api/types.ts';
import { CodeBlock } from '../../components/copy.tsx';
import { ownUrl } from '../../served-page.ts';
import { runSample } from '../../words/code.ts';
import { EVENT_WORDS } from '../../words/webhooks.ts';

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
