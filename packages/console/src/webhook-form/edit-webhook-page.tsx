import { Skeleton, Stack } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import {
  readSubscription,
  replaceSubscription,
  subscriptionQuery,
  testEndpoint,
  testUnsaved,
  webhooksKey,
} from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, toastDone } from '../components/page.tsx';
import { webhookPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/dead-ends.tsx';
import { useWebhookOfPage, WayTo, WebhookProblem } from '../webhook/page-of-webhook.tsx';
import { writeRefusal } from '../words/webhooks.ts';
import { WebhookForm } from './webhook-form.tsx';
import { fieldsOf, isSentAsBefore, testFieldsOf, valuesOf, type WebhookValues } from './webhook-values.ts';

export function Component() {
  const { account, webhookId, webhook, isGone } = useWebhookOfPage();
  if (isGone) return <NotFoundPage what="webhook" />;
  return (
    <>
      <PageHeading
        title="Edit webhook"
        tabTitle={webhook.data ? `Edit ${webhook.data.name}` : 'Edit webhook'}
        above={<WayTo accountId={account.id} webhookId={webhookId} name={webhook.data?.name} />}
        below="Existing deliveries and the secret do not change."
      />
      <WriteNotice />
      <WebhookProblem webhook={webhook} />
      {webhook.isPending && <FormSkeleton />}
      {webhook.data && writeRefusal(account) === null && <EditForm key={webhookId} webhook={webhook.data} />}
    </>
  );
}

function EditForm({ webhook }: { webhook: Subscription }) {
  const account = useAccount();
  const client = useQueryClient();
  const key = { accountId: account.id, webhookId: webhook.id };
  const navigate = useNavigate();
  // The values at the opening of the page: a later response must not overwrite the user's input.
  const [initial] = useState(() => valuesOf(webhook));
  const seen = useRef(webhook);
  return (
    <WebhookForm
      accountId={account.id}
      initial={initial}
      submitLabel="Save"
      problemTitle="The changes were not saved"
      cancelTo={webhookPath(account.id, webhook.id)}
      webhookId={webhook.id}
      onTest={(values, type) =>
        isSentAsBefore(values, initial)
          ? testEndpoint(key, type)
          : testUnsaved(account.id, testFieldsOf(values, type))
      }
      testNote={(values) => testNote(values, initial)}
      onSave={async (values) => {
        const saved = await replaceSubscription(key, fieldsOf(values), seen.current.updated_at).catch(
          async (error: unknown) => {
            if (!(error instanceof ApiError && error.code === CHANGED_MEANWHILE)) throw error;
            const theirs = await readSubscription(key);
            const words = overtakenWords(seen.current, theirs);
            // The user has seen the message, so a second save overwrites the other change.
            seen.current = theirs;
            throw new ApiError(error.code, words);
          },
        );
        client.setQueryData(subscriptionQuery(key).queryKey, saved);
        void client.invalidateQueries({ queryKey: webhooksKey(account.id) });
        toastDone(`“${saved.name}” was saved.`);
        await navigate(webhookPath(account.id, webhook.id));
      }}
    />
  );
}

/**
 * Describes what a test sends. Stored values are not sent to an unsaved endpoint, nor does the webhook's secret sign samples
 * for it.
 */
function testNote(values: WebhookValues, initial: WebhookValues): string {
  if (isSentAsBefore(values, initial)) return 'Signed with the secret of the webhook.';
  const stored = values.headers.filter(({ value, isStored }) => isStored && value === '');
  const names = stored.map(({ name }) => name).join(', ');
  return `Nothing is saved, and the sample is signed with a temporary secret.${names === '' ? '' : ` Sent without ${names}: stored values are sent only after the change is saved.`}`;
}

const CHANGED_MEANWHILE = 412;
const FIELD_WORDS = {
  name: 'the name',
  description: 'the description',
  event_types: 'the events',
  job_ids: 'the jobs',
  client_url: 'the endpoint',
  active: 'whether it is active',
  signature_header: 'the signature header',
  headers: 'the custom headers',
} as const satisfies Partial<Record<keyof Subscription, string>>;

/**
 * @param seen the version when the page was opened
 * @param theirs the version that another user has saved since
 */
function overtakenWords(seen: Subscription, theirs: Subscription): string {
  const fields = Object.keys(FIELD_WORDS) as (keyof typeof FIELD_WORDS)[];
  const changed = fields.filter((field) => JSON.stringify(seen[field]) !== JSON.stringify(theirs[field]));
  const what = changed.map((field) => FIELD_WORDS[field]).join(', ');
  return `Someone else saved this webhook after you opened it${what === '' ? '' : ` and changed ${what}`}. Save again to overwrite their changes, or reload the page to start from them.`;
}

function FormSkeleton() {
  return (
    <Stack gap="lg" maw={640} role="status" aria-label="Loading">
      {[60, 84, 150, 60, 60].map((height, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: their order never changes
        <Skeleton key={index} h={height} />
      ))}
    </Stack>
  );
}
