import { Alert, Anchor, Button, Group, List, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { createSubscription, subscriptionQuery, testUnsaved, webhooksKey } from '../api/subscriptions.ts';
import type { Account, CreatedSubscription } from '../api/types.ts';
import { LeaveDialog, useLeaveGuard } from '../components/confirm-dialog.tsx';
import { CodeBlock, CopiedText, CopyButton } from '../components/copy.tsx';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, Problem, toastSuccess } from '../components/page.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { writeDenialReason } from '../wording/webhooks.ts';
import { verificationSamples } from './verification-samples.ts';
import { WebhookForm } from './webhook-form.tsx';
import {
  NEW_WEBHOOK,
  toApiFields,
  toCopyValues,
  toTestFields,
  type WebhookValues,
} from './webhook-values.ts';

/** Formats whose targets cannot verify a signature, so that no one needs the secret, unless a gateway verifies it. */
const FORMATS_WITHOUT_SECRET: ReadonlySet<string | undefined> = new Set([
  'slack',
  'teams',
  'discord',
  'pagerduty',
]);

/**
 * Page "Create New Webhook" (docs/contract.md#subscriptions), followed by the secret. With `?from=` and the id of a webhook,
 * the form begins with the values of that webhook, except stored ones, which no response contains.
 */
export function Component() {
  const account = useAccount();
  const [search] = useSearchParams();
  // This is not a mutation, whose cache would store the secret for minutes.
  const [created, setCreated] = useState<CreatedSubscription | null>(null);
  if (created !== null)
    return <SecretOnce accountId={account.id} webhook={created} secret={created.hmac_secret} />;
  return (
    <>
      <PageHeading
        title="Create New Webhook"
        breadcrumb={
          <Anchor component={Link} to={webhooksPath(account.id)} inherit>
            Webhooks
          </Anchor>
        }
        subtitle={
          search.has('from')
            ? 'A copy: its stored values, such as those of headers, are not shown and must be entered again.'
            : `For ${account.name}. The secret is shown once, after you save.`
        }
      />
      {writeDenialReason(account) !== null ? (
        <WriteNotice />
      ) : (
        <NewWebhookForm account={account} onCreated={setCreated} />
      )}
    </>
  );
}

interface NewWebhookFormProps {
  account: Account;
  /** Called with a webhook whose secret is to be shown. */
  onCreated: (webhook: CreatedSubscription) => void;
}

function NewWebhookForm({ account, onCreated }: NewWebhookFormProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const initial = useInitialValues(account.id);
  if (initial.isPending)
    return <Skeleton height={400} maw={640} role="status" aria-label="Loading the webhook" />;
  if (initial.error !== null)
    return <Problem title="The webhook to duplicate could not be loaded" error={initial.error} />;
  return (
    <WebhookForm
      accountId={account.id}
      initial={initial.values}
      submitLabel="Save"
      problemTitle="The webhook was not created"
      cancelTo={webhooksPath(account.id)}
      webhookId={null}
      onTest={(values, type) => testUnsaved(account.id, toTestFields(values, type))}
      testSendsStored={() => false}
      testNote={() => 'Nothing is saved.'}
      onSave={async (values) => {
        const webhook = await createSubscription(account.id, toApiFields(values));
        void client.invalidateQueries({ queryKey: webhooksKey(account.id) });
        if (needsSecret(webhook)) return onCreated(webhook);
        toastSuccess(`“${webhook.name}” was created.`);
        await navigate(webhookPath(account.id, webhook.id));
      }}
    />
  );
}

/** Whether the endpoint may verify signatures. A signature header or custom headers are for a gateway of the user's own. */
function needsSecret({ client_url, format, signature_header, headers }: CreatedSubscription): boolean {
  if (client_url === '') return false;
  const hasGateway = (signature_header ?? null) !== null || Object.keys(headers ?? {}).length > 0;
  return hasGateway || !FORMATS_WITHOUT_SECRET.has(format);
}

interface InitialValues {
  values: WebhookValues;
  isPending: boolean;
  error: Error | null;
}

/** The values of a new webhook, or of the one to duplicate. */
function useInitialValues(accountId: number): InitialValues {
  const [search] = useSearchParams();
  const webhookId = search.get('from') ?? '';
  const original = useQuery({
    ...subscriptionQuery({ accountId, webhookId }),
    enabled: webhookId !== '',
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (webhookId === '') return { values: NEW_WEBHOOK, isPending: false, error: null };
  const values = original.data === undefined ? NEW_WEBHOOK : toCopyValues(original.data);
  return { values, isPending: original.isPending, error: original.error };
}

interface SecretOnceProps {
  accountId: number;
  webhook: Pick<CreatedSubscription, 'id' | 'name' | 'client_url' | 'signature_header'>;
  /** Stored only in the state of the page: not in a cache, a URL or a storage. */
  secret: string;
}

/** Shows the secret of a new webhook, once, and how to verify deliveries with it. */
function SecretOnce({ accountId, webhook, secret }: SecretOnceProps) {
  const navigate = useNavigate();
  const signatureHeader = webhook.signature_header ?? 'Authorization';
  const isCopied = useRef(false);
  const [showsCopied, setShowsCopied] = useState(false);
  const isGuarded = useCallback(() => !isCopied.current, []);
  const blocker = useLeaveGuard(isGuarded);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    // The focused button disappears with the form, and the unchanged URL moves no focus to the heading.
    box.current?.focus();
    window.scrollTo(0, 0);
  }, []);

  return (
    <>
      <PageHeading title={`“${webhook.name}” was created`} tabTitle="Secret of the new webhook" />
      <Stack gap="lg" maw={760}>
        <section ref={box} tabIndex={-1} style={{ outline: 'none' }} aria-label="The secret, shown once">
          <Alert
            role="note"
            color="yellow"
            icon={<IconKey aria-hidden />}
            title="Copy the secret now: it is shown only once"
          >
            <Text size="sm">
              It proves that a delivery comes from Runhook. Store it where your endpoint reads its secrets. If
              you lose it, rotate it on the webhook’s page.
            </Text>
          </Alert>
          <Group gap="sm" mt="sm" wrap="nowrap" align="center">
            <CopiedText testId="secret">{secret}</CopiedText>
            <CopyButton
              value={secret}
              label="Copy"
              what="the secret"
              size="sm"
              variant="filled"
              onCopied={() => {
                isCopied.current = true;
                setShowsCopied(true);
              }}
            />
          </Group>
        </section>
        <section aria-labelledby="verify">
          <Title order={2} size="h4" id="verify" mb={6}>
            How to verify a delivery
          </Title>
          <List size="sm" spacing={4} mb="sm">
            <List.Item>
              The <code>{signatureHeader}</code> header of a delivery is the HMAC-SHA256 of its raw body,
              keyed with the complete secret, in lower-case hex.
            </List.Item>
            <List.Item>
              Compute it over the bytes as received, before any parsing, and compare in constant time.
            </List.Item>
            <List.Item>
              Set the environment variable <code>HMAC_SECRET</code> to the secret:
            </List.Item>
          </List>
          <Samples clientUrl={webhook.client_url} signatureHeader={signatureHeader} />
        </section>
        <Group gap="sm">
          <Button onClick={() => void navigate(webhookPath(accountId, webhook.id))}>Go to the webhook</Button>
          <Text size="sm" c="dimmed" role="status">
            {showsCopied ? 'The secret was copied.' : 'The secret has not been copied yet.'}
          </Text>
        </Group>
      </Stack>
      <LeaveDialog
        blocker={blocker}
        title="Leave without the secret?"
        text="You have not copied it, and it is never shown again. Without it, your endpoint cannot verify deliveries."
        leaveLabel="Leave without it"
        stayLabel="Stay and copy it"
      />
    </>
  );
}

function Samples({ clientUrl, signatureHeader }: { clientUrl: string; signatureHeader: string }) {
  const samples = verificationSamples(clientUrl, signatureHeader);
  return (
    <Tabs defaultValue="express" keepMounted={false}>
      <Tabs.List aria-label="Samples">
        {samples.map(({ key, label }) => (
          <Tabs.Tab key={key} value={key}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {samples.map(({ key, label, code }) => (
        <Tabs.Panel key={key} value={key} pt="sm">
          <CodeBlock code={code} label={`Sample for ${label}`} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
