import { Alert, PasswordInput, Stack, Text, Textarea } from '@mantine/core';
import {
  checkSignature,
  type DeliveryInput,
  formatVerdict,
  type Verdict,
} from '@runhook/contract/check-signature';
import { type ReactNode, useEffect, useState } from 'react';
import { PageHeading } from '../components/page.tsx';
import { StatusBadge } from '../components/state.tsx';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { useCurrentWebhook, WebhookBreadcrumb } from '../webhook/current-webhook.tsx';

/** Page that finds out why an endpoint rejects a signature. The pasted values do not leave the page. */
export function Component() {
  const { account, webhookId, webhook, isNotFound } = useCurrentWebhook();
  const [body, setBody] = useState('');
  const [header, setHeader] = useState('');
  const [secret, setSecret] = useState('');
  const signatureHeader = webhook.data?.signature_header ?? 'Authorization';
  const verdict = useVerdict({ body, header, secret, signatureHeader });
  if (isNotFound) return <NotFoundPage what="webhook" />;
  return (
    <>
      <PageHeading
        title="Check a signature"
        breadcrumb={
          <WebhookBreadcrumb accountId={account.id} webhookId={webhookId} name={webhook.data?.name} />
        }
        subtitle="Finds out why your endpoint rejects a delivery’s signature. The check runs in your browser: nothing that you paste is sent or stored."
      />
      <Stack gap="md" maw={860}>
        <Textarea
          label="Body"
          description="The bytes that your endpoint received, before any parsing."
          autosize
          minRows={5}
          maxRows={16}
          value={body}
          onChange={(event) => setBody(event.currentTarget.value)}
          {...CODE}
        />
        <Textarea
          label="Header"
          description={`The value of ${signatureHeader}, or complete header lines, with webhook-signature and webhook-timestamp if you verify these.`}
          autosize
          minRows={2}
          maxRows={10}
          value={header}
          onChange={(event) => setHeader(event.currentTarget.value)}
          {...CODE}
        />
        <PasswordInput
          label="Secret"
          description="The secret as your endpoint reads it."
          autoComplete="off"
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
          {...CODE}
        />
        <div role="status" aria-label="Verdict">
          {verdict === null ? <NoCrypto /> : <VerdictView verdict={verdict} webhookId={webhookId} />}
        </div>
      </Stack>
    </>
  );
}

const CODE = {
  spellCheck: false,
  autoCapitalize: 'off',
  styles: { input: { fontFamily: 'var(--mantine-font-family-monospace)' } },
};

/** Checks the pasted values. Returns null if the browser cannot compute signatures. */
function useVerdict({ body, header, secret, signatureHeader }: DeliveryInput): Verdict | null {
  const [verdict, setVerdict] = useState<Verdict>({ kind: 'unreadable', reason: 'no-body' });
  useEffect(() => {
    if (!HAS_CRYPTO) return;
    let isCurrent = true;
    void checkSignature({ body, header, secret, signatureHeader }).then((found) => {
      if (isCurrent) setVerdict(found);
    });
    return () => {
      isCurrent = false;
    };
  }, [body, header, secret, signatureHeader]);
  return HAS_CRYPTO ? verdict : null;
}

/**
 * Whether the browser provides `crypto.subtle`, which it does not on pages that were loaded over HTTP from another
 * machine.
 */
const HAS_CRYPTO = globalThis.crypto?.subtle !== undefined;

function NoCrypto() {
  return (
    <Alert color="yellow" title="Not available on this page">
      Browsers compute signatures only on pages that were loaded over HTTPS. Open the console over HTTPS.
    </Alert>
  );
}

function VerdictView({ verdict, webhookId }: { verdict: Verdict; webhookId: string }): ReactNode {
  const { tone, title, lines } = formatVerdict(verdict, webhookId);
  return (
    <Stack gap={4}>
      <StatusBadge tone={tone}>{title}</StatusBadge>
      {lines.map((line) => (
        <Text size="sm" key={line}>
          {line}
        </Text>
      ))}
    </Stack>
  );
}
