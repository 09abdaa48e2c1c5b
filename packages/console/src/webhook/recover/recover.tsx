import { Modal } from '@mantine/core';
import { useState } from 'react';
import type { WebhookKey } from '../../api/subscriptions.ts';
import { GuardedButton } from '../../components/guarded.tsx';
import { RecoverForm } from './recover-form.tsx';
import { RecoveryProgress } from './recovery-progress.tsx';

interface RecoverProps {
  webhook: WebhookKey;
  isActive: boolean;
  /** Why the caller may not change webhooks; null when it may. */
  refusal: string | null;
}

const INACTIVE = 'The webhook is switched off. Switch it on to send deliveries again.';

/** Sends again what failed in a window of time. */
export function Recover({ webhook, isActive, refusal }: RecoverProps) {
  const [isOpen, setOpen] = useState(false);
  const [recoveryId, setRecoveryId] = useState<string | null>(null);
  return (
    <>
      <GuardedButton
        size="xs"
        variant="default"
        reason={refusal ?? (isActive ? null : INACTIVE)}
        onClick={() => setOpen(true)}
      >
        {recoveryId === null ? 'Recover a time window' : 'Recovery'}
      </GuardedButton>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Recover a time window"
        size="lg"
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {recoveryId === null ? (
          <RecoverForm
            webhook={webhook}
            onStarted={({ id }) => setRecoveryId(id)}
            onCancel={() => setOpen(false)}
          />
        ) : (
          <RecoveryProgress webhook={webhook} recoveryId={recoveryId} onAnother={() => setRecoveryId(null)} />
        )}
      </Modal>
    </>
  );
}
