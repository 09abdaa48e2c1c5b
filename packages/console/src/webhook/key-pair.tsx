import { Code, Group, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { finishRotation, rotateSignatureKey, type WebhookKey, webhooksKey } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { CopyButton } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { toastSuccess } from '../components/page.tsx';
import { Timestamp } from '../components/state.tsx';
import { consoleUrl } from '../served-page.ts';

interface KeyPairProps {
  webhook: WebhookKey;
  signatureKey: NonNullable<Subscription['signature_key']>;
  /** Whether the secret is being rotated; there is one rotation at a time. */
  isSecretRotating: boolean;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
}

/** Public keys of a webhook, and their rotation (docs/contract.md#rotating-a-secret). */
export function KeyPair({ webhook, signatureKey, isSecretRotating, denialReason }: KeyPairProps) {
  const [isConfirming, setConfirming] = useState(false);
  const { public_keys: publicKeys, rotation } = signatureKey;
  const rotatingReason = isSecretRotating ? 'The secret is being rotated.' : null;
  return (
    <section aria-labelledby="key-pair">
      <Title order={2} size="h4" id="key-pair" mb="xs">
        Public key
      </Title>
      <Group justify="space-between">
        <Stack gap={4}>
          {publicKeys.map((publicKey) => (
            <Group key={publicKey} gap={6}>
              <Code style={{ overflowWrap: 'anywhere' }}>{publicKey}</Code>
              <CopyButton value={publicKey} what="the public key" size="compact-xs" />
            </Group>
          ))}
          <Text size="sm">
            Verifies the Ed25519 signature <Code>v1a</Code> in <Code>webhook-signature</Code>. Also at{' '}
            <Code style={{ overflowWrap: 'anywhere' }}>
              {consoleUrl(`.well-known/webhook-keys/${webhook.webhookId}`)}
            </Code>
            .
          </Text>
          {rotation !== undefined && (
            <Text size="sm">
              Both keys sign. The old one, the first, expires <Timestamp at={rotation.ends_at} />.
            </Text>
          )}
        </Stack>
        <GuardedButton
          size="xs"
          variant="default"
          reason={denialReason ?? rotatingReason}
          onClick={() => setConfirming(true)}
        >
          {rotation === undefined ? 'Rotate the key pair' : 'Finish now'}
        </GuardedButton>
      </Group>
      <RotationDialog
        webhook={webhook}
        isRotating={rotation !== undefined}
        isOpen={isConfirming}
        onClose={() => setConfirming(false)}
      />
    </section>
  );
}

interface RotationDialogProps {
  webhook: WebhookKey;
  isRotating: boolean;
  isOpen: boolean;
  onClose: () => void;
}

/** Begins a rotation, or finishes the current one. */
function RotationDialog({ webhook, isRotating, isOpen, onClose }: RotationDialogProps) {
  const client = useQueryClient();
  async function confirm() {
    await (isRotating ? finishRotation(webhook) : rotateSignatureKey(webhook));
    toastSuccess(isRotating ? 'The old key pair was erased.' : 'Both key pairs sign for a day.');
    await client.invalidateQueries({ queryKey: webhooksKey(webhook.accountId) });
  }
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title={isRotating ? 'Finish the rotation now?' : 'Rotate the key pair?'}
      confirmLabel={isRotating ? 'Erase the old key pair' : 'Rotate the key pair'}
      cancelLabel="Not yet"
      isDangerous={isRotating}
      problemTitle={isRotating ? 'The rotation was not finished' : 'The key pair was not rotated'}
      onConfirm={confirm}
    >
      <Text size="sm">
        {isRotating
          ? 'Deliveries are then signed with the new key pair only. An endpoint that does not have its public key rejects them.'
          : 'Deliveries are signed with both key pairs for 24 hours. Configure the new public key at your endpoint before that.'}
      </Text>
    </ConfirmDialog>
  );
}
