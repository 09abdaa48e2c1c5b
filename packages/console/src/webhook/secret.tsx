import { Alert, Button, Group, Radio, Stack, Text, Title } from '@mantine/core';
import { IconKey } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { finishRotation, rotateSecret, type WebhookKey, webhooksKey } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { CopiedText, CopyButton } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { Dialog } from '../components/lazy-popover.tsx';
import { Problem, toastSuccess } from '../components/page.tsx';
import { Timestamp } from '../components/state.tsx';

interface SecretProps {
  webhook: WebhookKey;
  subscription: Subscription;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
}

/** Rotation of the secret (docs/contract.md#rotating-a-secret). */
export function Secret({ webhook, subscription, denialReason }: SecretProps) {
  const [isRotating, setRotating] = useState(false);
  const [isFinishing, setFinishing] = useState(false);
  const rotation = subscription.secret_rotation;
  return (
    <section aria-labelledby="secret">
      <Title order={2} size="h4" id="secret" mb="xs">
        Secret
      </Title>
      {rotation === undefined ? (
        <Group justify="space-between">
          <Text size="sm">
            Deliveries are signed with one secret. It was shown once, when it was created.
          </Text>
          <GuardedButton size="xs" variant="default" reason={denialReason} onClick={() => setRotating(true)}>
            Rotate the secret
          </GuardedButton>
        </Group>
      ) : (
        <Alert color="yellow" role="note" icon={<IconKey aria-hidden />} title="The secret is being rotated">
          <Group justify="space-between">
            <Text size="sm">
              Deliveries are signed with both secrets. The old one expires <Timestamp at={rotation.ends_at} />
              .
            </Text>
            <GuardedButton
              size="xs"
              variant="default"
              reason={denialReason}
              onClick={() => setFinishing(true)}
            >
              Finish now
            </GuardedButton>
          </Group>
        </Alert>
      )}
      <RotateDialog webhook={webhook} isOpen={isRotating} onClose={() => setRotating(false)} />
      <FinishDialog webhook={webhook} isOpen={isFinishing} onClose={() => setFinishing(false)} />
    </section>
  );
}

interface DialogProps {
  webhook: WebhookKey;
  isOpen: boolean;
  onClose: () => void;
}

const OVERLAPS = [
  { hours: '24', label: 'A day' },
  { hours: '72', label: 'Three days' },
  { hours: '168', label: 'A week' },
  { hours: '0', label: 'No overlap: revoke the old secret now' },
];

/** Asks for the overlap, then shows the new secret once. */
function RotateDialog({ webhook, isOpen, onClose }: DialogProps) {
  // Stored only in the state of the page: not in a cache, a URL or a storage.
  const [secret, setSecret] = useState<string | null>(null);
  function close() {
    setSecret(null);
    onClose();
  }
  return (
    <Dialog
      opened={isOpen}
      onClose={close}
      title={secret === null ? 'Rotate the secret?' : 'Copy the new secret now: it is shown only once'}
      size="lg"
      closeOnClickOutside={secret === null}
      closeOnEscape={secret === null}
    >
      {secret === null ? (
        <OverlapForm webhook={webhook} onRotated={setSecret} onCancel={close} />
      ) : (
        <NewSecret secret={secret} onDone={close} />
      )}
    </Dialog>
  );
}

interface OverlapFormProps {
  webhook: WebhookKey;
  onRotated: (secret: string) => void;
  onCancel: () => void;
}

function OverlapForm({ webhook, onRotated, onCancel }: OverlapFormProps) {
  const client = useQueryClient();
  const [hours, setHours] = useState('24');
  const [isPending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function rotate() {
    setPending(true);
    setProblem(null);
    try {
      onRotated(await rotateSecret(webhook, Number(hours)));
      await client.invalidateQueries({ queryKey: webhooksKey(webhook.accountId) });
    } catch (error) {
      setProblem(error);
    } finally {
      setPending(false);
    }
  }

  return (
    <Stack>
      <Text size="sm">
        You get a new secret, and deliveries are signed with both during the overlap. Configure your endpoint
        to accept either of them, so that it rejects no delivery.
      </Text>
      <Radio.Group label="Overlap of both secrets" value={hours} onChange={setHours}>
        <Stack gap={6} mt={6}>
          {OVERLAPS.map((overlap) => (
            <Radio key={overlap.hours} value={overlap.hours} label={overlap.label} />
          ))}
        </Stack>
      </Radio.Group>
      {problem !== null && <Problem title="The secret was not rotated" error={problem} />}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onCancel} disabled={isPending} data-autofocus>
          Keep the secret
        </Button>
        <Button onClick={() => void rotate()} loading={isPending}>
          Create a new secret
        </Button>
      </Group>
    </Stack>
  );
}

function NewSecret({ secret, onDone }: { secret: string; onDone: () => void }) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Stack>
      <Group gap="sm" wrap="nowrap" align="center">
        <CopiedText testId="new-secret">{secret}</CopiedText>
        <CopyButton
          value={secret}
          what="the new secret"
          size="sm"
          variant="filled"
          onCopied={() => setCopied(true)}
        />
      </Group>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {isCopied ? 'The secret was copied.' : 'The secret has not been copied yet.'}
        </Text>
        <Button variant="default" onClick={onDone}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}

function FinishDialog({ webhook, isOpen, onClose }: DialogProps) {
  const client = useQueryClient();
  async function finish() {
    await finishRotation(webhook);
    toastSuccess('The old secret was erased.');
    await client.invalidateQueries({ queryKey: webhooksKey(webhook.accountId) });
  }
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Finish the rotation now?"
      confirmLabel="Erase the old secret"
      cancelLabel="Not yet"
      isDangerous
      problemTitle="The rotation was not finished"
      onConfirm={finish}
    >
      <Text size="sm">
        Deliveries are then signed with the new secret only. An endpoint that does not have it rejects them.
        The old secret cannot be restored.
      </Text>
    </ConfirmDialog>
  );
}
