import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { recoveriesQuery } from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { Dialog } from '../components/lazy-popover.tsx';
import { formatShare } from './recover-wording.ts';

const RecoverDialog = lazy(() => import('./recover-dialog.tsx'));

interface RecoverProps {
  webhook: WebhookKey;
  isActive: boolean;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
}

const INACTIVE = 'The webhook is switched off. Switch it on to send what it missed.';

/** Sends what did not arrive in a time range, and lists earlier recoveries, which may still be running. */
export function Recover({ webhook, isActive, denialReason }: RecoverProps) {
  const [isOpen, setOpen] = useState(false);
  const recoveries = useQuery(recoveriesQuery(webhook));
  const all = recoveries.data ?? [];
  const running = all.find(({ status }) => status === 'running');
  const reason = denialReason ?? (isActive ? null : INACTIVE);
  return (
    <>
      <GuardedButton
        size="xs"
        variant="default"
        reason={all.length > 0 ? null : reason}
        onClick={() => setOpen(true)}
      >
        {running === undefined ? 'Send what I missed' : `Recovery: ${formatShare(running)}`}
      </GuardedButton>
      <Dialog opened={isOpen} onClose={() => setOpen(false)} title="Send what I missed" size="lg">
        <Suspense fallback={<Skeleton height={320} role="status" aria-label="Loading" />}>
          <RecoverDialog
            webhook={webhook}
            recoveries={all}
            running={running}
            reason={reason}
            denialReason={denialReason}
            onClose={() => setOpen(false)}
          />
        </Suspense>
      </Dialog>
    </>
  );
}
