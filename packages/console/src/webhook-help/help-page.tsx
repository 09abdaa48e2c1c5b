import { Anchor, Code, List, Skeleton, Stack, Tabs, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useSearchParams } from 'react-router';
import type { Subscription } from '../api/types.ts';
import { CodeBlock } from '../components/copy.tsx';
import { PageHeading, Problem } from '../components/page.tsx';
import { signaturePath } from '../paths.ts';
import { consoleUrl } from '../served-page.ts';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { useCurrentWebhook, WebhookBreadcrumb, WebhookProblem } from '../webhook/current-webhook.tsx';
import FeedGuide from '../webhook/feed-guide.tsx';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import { RECEIVERS, type Receiver } from './receivers.ts';

/** Page that explains how to receive deliveries, with a receiver in each language of the examples. */
export function Component() {
  const { account, webhookId, webhook, isNotFound } = useCurrentWebhook();
  if (isNotFound) return <NotFoundPage what="webhook" />;
  return (
    <>
      <PageHeading
        title="How to receive deliveries"
        tabTitle={
          webhook.data ? `How to receive deliveries of ${webhook.data.name}` : 'How to receive deliveries'
        }
        breadcrumb={
          <WebhookBreadcrumb accountId={account.id} webhookId={webhookId} name={webhook.data?.name} />
        }
        subtitle="A receiver that verifies each delivery, with this webhook’s header and path filled in. Runhook’s tests run these files."
      />
      <WebhookProblem webhook={webhook} />
      {webhook.isPending && <Skeleton height={420} role="status" aria-label="Loading" />}
      {webhook.data?.client_url === '' && <FeedGuide accountId={account.id} webhookId={webhookId} />}
      {webhook.data && webhook.data.client_url !== '' && (
        <Stack gap="lg" maw={960}>
          <Languages webhook={webhook.data} />
          {webhook.data.signature_key !== undefined && (
            <CodeBlock
              label="With a public key instead of the secret"
              code={publicKeySample(webhook.data.signature_key.public_keys)}
            />
          )}
          <Rules accountId={account.id} webhook={webhook.data} />
        </Stack>
      )}
    </>
  );
}

function Languages({ webhook }: { webhook: Subscription }) {
  const [search, setSearch] = useSearchParams();
  const requested = RECEIVERS.find(({ key }) => key === search.get('language'));
  const shown = requested ?? RECEIVERS[0];
  return (
    <Tabs
      value={shown?.key ?? null}
      onChange={(key) => setSearch({ language: key ?? '' }, { replace: true, preventScrollReset: true })}
      keepMounted={false}
    >
      <Tabs.List aria-label="Languages">
        {RECEIVERS.map(({ key, label }) => (
          <Tabs.Tab key={key} value={key}>
            {label}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {RECEIVERS.map((receiver) => (
        <Tabs.Panel key={receiver.key} value={receiver.key} pt="sm">
          <Files receiver={receiver} webhook={webhook} />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}

const HEIGHT_MAX = 520;

function Files({ receiver, webhook }: { receiver: Receiver; webhook: Subscription }) {
  const files = useQuery({
    queryKey: ['examples', receiver.key],
    queryFn: receiver.load,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const settings = { clientUrl: webhook.client_url, signatureHeader: signatureHeaderOf(webhook) };
  return (
    <Stack gap="sm">
      {files.isError && (
        <Problem
          title="The receiver could not be loaded"
          error={files.error}
          onRetry={() => void files.refetch()}
        />
      )}
      {files.isPending && <Skeleton height={320} role="status" aria-label="Loading" />}
      {files.data?.map(({ name, code }, index) => (
        <CodeBlock
          key={name}
          label={name}
          code={index === 0 ? receiver.fill(code, settings) : code}
          heightMax={HEIGHT_MAX}
        />
      ))}
      <CodeBlock label="Run it" code={receiver.run} wrap />
      <Text size="sm">
        It listens on the port in <Code>PORT</Code>. Route{' '}
        <Code style={{ overflowWrap: 'anywhere', whiteSpace: 'normal' }}>{webhook.client_url}</Code> to that
        port, with an unchanged path.
      </Text>
    </Stack>
  );
}

function publicKeySample(publicKeys: readonly string[]): string {
  return [
    "import { expressHandler } from '@runhook/receiver'; // in Python: Receiver(public_keys=[…])",
    '',
    `const options = { publicKeys: ${JSON.stringify(publicKeys, null, 2)} };`,
    "app.post('/webhooks', expressHandler(options, onEvent));",
  ].join('\n');
}

function signatureHeaderOf({ signature_header = 'Authorization' }: Subscription): string {
  return signature_header;
}

/** Rules for every receiver (docs/contract.md#signing). */
function Rules({ accountId, webhook }: { accountId: number; webhook: Subscription }) {
  const docs = (
    <Anchor href={consoleUrl('docs')} underline="always" inherit>
      the reference
    </Anchor>
  );
  return (
    <>
      <section aria-labelledby="arrives">
        <Title order={2} size="h4" id="arrives" mb={6}>
          What arrives
        </Title>
        <List size="sm" spacing={4}>
          {webhook.event_types.map((type) => (
            <List.Item key={type}>
              <Code>{type}</Code>: {EVENT_TEXTS[type].fires} {EVENT_TEXTS[type].remark}
            </List.Item>
          ))}
          <List.Item>Every field of the body, with an example of each event, is in {docs}.</List.Item>
        </List>
      </section>
      <section aria-labelledby="headers">
        <Title order={2} size="h4" id="headers" mb={6}>
          Headers
        </Title>
        <List size="sm" spacing={4}>
          <List.Item>
            <Code>{signatureHeaderOf(webhook)}</Code>: HMAC-SHA256 of the raw body in lower-case hex, keyed
            with the complete text of the secret, including <Code>whsec_</Code>.
          </List.Item>
          <List.Item>
            <Code>webhook-id</Code>: the event’s id, the same in every attempt.
          </List.Item>
          <List.Item>
            <Code>webhook-timestamp</Code> and <Code>webhook-signature</Code>: verified by libraries of
            Standard Webhooks, which also reject replays.
          </List.Item>
          {webhook.signature_key !== undefined && (
            <List.Item>
              <Code>v1a</Code> in <Code>webhook-signature</Code>: an Ed25519 signature, verified with the
              public key.
            </List.Item>
          )}
          {webhook.headers !== undefined && (
            <List.Item>
              Custom headers: <Code>{Object.keys(webhook.headers).join(', ')}</Code>.
            </List.Item>
          )}
        </List>
      </section>
      <section aria-labelledby="verify">
        <Title order={2} size="h4" id="verify" mb={6}>
          Verify, respond, then process
        </Title>
        <List size="sm" spacing={4}>
          <List.Item>
            Verify the bytes as received, before any parsing, and compare in constant time. Return 401 if the
            signature is wrong. If your endpoint rejects genuine deliveries,{' '}
            <Anchor component={Link} to={signaturePath(accountId, webhook.id)} underline="always" inherit>
              check a signature
            </Anchor>{' '}
            here: it shows which byte differs.
          </List.Item>
          <List.Item>Return a 2xx within ten seconds, and process the event afterwards.</List.Item>
          <List.Item>
            Otherwise the delivery is retried up to five times: after 30 seconds, and then after twice the
            previous wait. <Code>Retry-After</Code> of a 429 or 503 lengthens the wait.
          </List.Item>
          <List.Item>
            The same event may arrive more than once. Ignore an <Code>eventId</Code> that you have already
            processed; store these ids for at least a day.
          </List.Item>
          <List.Item>
            Events may arrive out of order: compare their <Code>timestamp</Code>.
          </List.Item>
        </List>
      </section>
    </>
  );
}
