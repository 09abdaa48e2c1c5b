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
  testFormat,
  testUnsaved,
  webhooksKey,
} from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, toastSuccess } from '../components/page.tsx';
import { webhookPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { useCurrentWebhook, WebhookBreadcrumb, WebhookProblem } from '../webhook/current-webhook.tsx';
import { writeDenialReason } from '../wording/webhooks.ts';
import { describeMissingOption, listMissingOptions } from './webhook-checks.ts';
import { WebhookForm } from './webhook-form.tsx';
import {
  hasSameDestination,
  hasSameFormat,
  listStoredFormatOptions,
  toApiFields,
  toFormValues,
  toTestFields,
  type WebhookValues,
} from './webhook-values.ts';

export function Component() {
  const { account, webhookId, webhook, isNotFound } = useCurrentWebhook();
  if (isNotFound) return <NotFoundPage what="webhook" />;
  return (
    <>
      <PageHeading
        title="Edit webhook"
        tabTitle={webhook.data ? `Edit ${webhook.data.name}` : 'Edit webhook'}
        breadcrumb={
          <WebhookBreadcrumb accountId={account.id} webhookId={webhookId} name={webhook.data?.name} />
        }
        subtitle="Existing deliveries and the secret do not change."
      />
      <WriteNotice />
      <WebhookProblem webhook={webhook} />
      {webhook.isPending && <FormSkeleton />}
      {webhook.data && writeDenialReason(account) === null && (
        <EditForm key={webhookId} webhook={webhook.data} />
      )}
    </>
  );
}

function EditForm({ webhook }: { webhook: Subscription }) {
  const account = useAccount();
  const client = useQueryClient();
  const key = { accountId: account.id, webhookId: webhook.id };
  const navigate = useNavigate();
  // The values at the opening of the page: a later response must not overwrite the user's input.
  const [initial] = useState(() => toFormValues(webhook));
  const baseline = useRef(webhook);
  return (
    <WebhookForm
      accountId={account.id}
      initial={initial}
      submitLabel="Save"
      problemTitle="The changes were not saved"
      cancelTo={webhookPath(account.id, webhook.id)}
      webhookId={webhook.id}
      onTest={(values, type) => {
        if (!hasSameDestination(values, initial)) return testUnsaved(account.id, toTestFields(values, type));
        return hasSameFormat(values, initial)
          ? testEndpoint(key, type)
          : testFormat(key, type, toApiFields(values));
      }}
      testSendsStored={(values) => hasSameDestination(values, initial)}
      testNote={(values) => testNote(values, initial)}
      onSave={async (values) => {
        const saved = await replaceSubscription(key, toApiFields(values), baseline.current.updated_at).catch(
          async (error: unknown) => {
            if (!(error instanceof ApiError && error.code === PRECONDITION_FAILED)) throw error;
            const current = await readSubscription(key);
            const message = describeConflict(baseline.current, current);
            // The user sees the message, so a second save overwrites the other change.
            baseline.current = current;
            throw new ApiError(error.code, message);
          },
        );
        client.setQueryData(subscriptionQuery(key).queryKey, saved);
        void client.invalidateQueries({ queryKey: webhooksKey(account.id) });
        toastSuccess(`“${saved.name}” was saved.`);
        await navigate(webhookPath(account.id, webhook.id));
      }}
    />
  );
}

/**
 * Describes what a test sends. With an unsaved endpoint or header, stored header values are not sent, and a temporary
 * secret signs the sample.
 */
function testNote(values: WebhookValues, initial: WebhookValues): string {
  if (hasSameDestination(values, initial)) return 'Signed with the secret of the webhook.';
  const [missing] = listMissingOptions(values, false);
  if (missing !== undefined) return describeMissingOption(missing);
  const stored = values.headers.filter(({ value, isStored }) => isStored && value === '');
  const names = [...stored.map(({ name }) => name), ...listStoredFormatOptions(values)].join(', ');
  return `Nothing is saved, and the sample is signed with a temporary secret.${names === '' ? '' : ` Sent without ${names}: stored values are sent only after the change is saved.`}`;
}

const PRECONDITION_FAILED = 412;
const FIELD_LABELS = {
  name: 'the name',
  description: 'the description',
  event_types: 'the events',
  job_ids: 'the jobs',
  client_url: 'the endpoint',
  active: 'whether it is active',
  signature_header: 'the signature header',
  headers: 'the custom headers',
  format: 'the format',
  format_options: 'the options of the format',
  filters: 'the filters',
  ordered: 'the order',
  rate_limit: 'the rate limit',
  deactivate_on_410: 'switching off after 410 Gone',
  labels: 'the labels',
  signature_key: 'the key pair',
} as const satisfies Partial<Record<keyof Subscription, string>>;

/**
 * @param baseline the version that the user has edited
 * @param current the version that another user has saved since
 */
function describeConflict(baseline: Subscription, current: Subscription): string {
  const fields = Object.keys(FIELD_LABELS) as (keyof typeof FIELD_LABELS)[];
  const changed = fields.filter(
    (field) => JSON.stringify(baseline[field]) !== JSON.stringify(current[field]),
  );
  const fieldList = changed.map((field) => FIELD_LABELS[field]).join(', ');
  return `Someone else saved this webhook after you opened it${fieldList === '' ? '' : ` and changed ${fieldList}`}. Save again to overwrite their changes, or reload the page to start from them.`;
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
