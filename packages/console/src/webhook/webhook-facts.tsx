import { Anchor, Code, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { jobsByIdQuery } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { CopyButton } from '../components/copy.tsx';
import { LastStatus, Timestamp } from '../components/state.tsx';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import { Fact } from './fact.tsx';
import classes from './webhook-facts.module.css';

// With the formats, which the first load of the console must not contain.
const OptionFacts = lazy(() => import('./option-facts.tsx'));

/** Configuration and state of a webhook. */
export function WebhookFacts({ accountId, webhook }: { accountId: number; webhook: Subscription }) {
  return (
    <dl className={classes.facts}>
      <Fact name="Endpoint" width="half">
        {webhook.client_url === '' ? (
          'None: the events are read from the feed'
        ) : (
          <Group gap={6} wrap="nowrap" align="flex-start">
            <Code className={classes.code ?? ''}>{webhook.client_url}</Code>
            <CopyButton value={webhook.client_url} what="the endpoint" size="compact-xs" />
          </Group>
        )}
      </Fact>
      <Fact name="Jobs" width="half">
        <Jobs accountId={accountId} ids={webhook.job_ids} />
      </Fact>
      <Fact name="Events" width="full">
        <ul className={classes.list}>
          {webhook.event_types.map((type) => (
            <li key={type}>
              {EVENT_TEXTS[type].label}{' '}
              <Text span size="sm" c="dimmed">
                {EVENT_TEXTS[type].fires}
              </Text>
            </li>
          ))}
        </ul>
      </Fact>
      {hasOptions(webhook) && (
        <Suspense>
          <OptionFacts accountId={accountId} webhook={webhook} />
        </Suspense>
      )}
      {webhook.signature_header !== undefined && (
        <Fact name="Signature header" width="half">
          <Code className={classes.code ?? ''}>{webhook.signature_header}</Code>
        </Fact>
      )}
      {webhook.headers !== undefined && (
        <Fact name="Custom headers" width="half">
          <Code className={classes.code ?? ''}>{Object.keys(webhook.headers).join(', ')}</Code>
        </Fact>
      )}
      <Fact name="Last dispatch">
        <LastStatus subscription={webhook} />
      </Fact>
      <Fact name="Created">
        <Timestamp at={webhook.created_at} />
      </Fact>
      <Fact name="Updated">
        <Timestamp at={webhook.updated_at} />
      </Fact>
      <Fact name="Id">
        <Group gap={6} wrap="nowrap" align="flex-start">
          <Code className={classes.code ?? ''}>{webhook.id}</Code>
          <CopyButton value={webhook.id} what="the id" size="compact-xs" />
        </Group>
      </Fact>
    </dl>
  );
}

const OPTIONS = ['format', 'filters', 'ordered', 'rate_limit', 'deactivate_on_410', 'labels'] as const;

function hasOptions(webhook: Subscription): boolean {
  return OPTIONS.some((name) => webhook[name] !== undefined);
}

const JOBS_SHOWN = 5;

function Jobs({ accountId, ids }: { accountId: number; ids: readonly string[] }) {
  const jobs = useQuery(jobsByIdQuery(accountId, ids));
  const [showsAll, setShowsAll] = useState(false);
  if (ids.length === 0) return <>All jobs of the account</>;
  const names = new Map(jobs.data?.map(({ id, name }) => [String(id), name]));
  const shown = showsAll ? ids : ids.slice(0, JOBS_SHOWN);
  return (
    <>
      {shown.map((id) => names.get(id) ?? `Job ${id}`).join(', ')}
      {ids.length > shown.length && (
        <>
          {' '}
          <Anchor component="button" type="button" size="sm" onClick={() => setShowsAll(true)}>
            and {ids.length - shown.length} more
          </Anchor>
        </>
      )}
    </>
  );
}
