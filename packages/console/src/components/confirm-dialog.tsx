import { Button, Group, Stack, Text } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import { type Blocker, useBlocker } from 'react-router';
import { Dialog } from './lazy-popover.tsx';
import { Problem } from './page.tsx';

interface ConfirmDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** A question that names the affected object. */
  title: string;
  /** Describes the consequences. */
  children: ReactNode;
  confirmLabel: string;
  cancelLabel?: string;
  /** Whether the action cannot be undone. */
  isDangerous?: boolean;
  /** The dialog closes when the promise resolves, and shows the error when it rejects. */
  onConfirm: () => Promise<unknown> | unknown;
  problemTitle?: string;
}

/** Asks for confirmation. The cancel button has the initial focus. */
export function ConfirmDialog({
  isOpen,
  onClose,
  title,
  children,
  confirmLabel,
  cancelLabel = 'Cancel',
  isDangerous = false,
  onConfirm,
  problemTitle = 'The action failed',
}: ConfirmDialogProps) {
  const [isPending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  function close() {
    setProblem(null);
    onClose();
  }

  async function confirm() {
    setPending(true);
    setProblem(null);
    try {
      await onConfirm();
      close();
    } catch (error) {
      setProblem(error);
    } finally {
      setPending(false);
    }
  }

  return (
    <Dialog opened={isOpen} onClose={() => !isPending && close()} title={title}>
      <Stack>
        <div>{children}</div>
        {problem !== null && <Problem title={problemTitle} error={problem} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close} disabled={isPending} data-autofocus>
            {cancelLabel}
          </Button>
          <Button {...(isDangerous && { color: 'red' })} onClick={() => void confirm()} loading={isPending}>
            {confirmLabel}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

interface LeaveDialogProps {
  blocker: Blocker;
  title: string;
  text: string;
  leaveLabel: string;
  stayLabel: string;
}

/** Asks whether to leave the page while the blocker holds a navigation. */
export function LeaveDialog({ blocker, title, text, leaveLabel, stayLabel }: LeaveDialogProps) {
  return (
    <ConfirmDialog
      isOpen={blocker.state === 'blocked'}
      onClose={() => blocker.state === 'blocked' && blocker.reset()}
      title={title}
      confirmLabel={leaveLabel}
      cancelLabel={stayLabel}
      isDangerous
      onConfirm={() => blocker.state === 'blocked' && blocker.proceed()}
    >
      <Text size="sm">{text}</Text>
    </ConfirmDialog>
  );
}

/** Blocks leaving the page while `isGuarded()`: within the console by the returned blocker, otherwise the browser asks. */
export function useLeaveGuard(isGuarded: () => boolean): Blocker {
  useEffect(() => {
    const onBeforeUnload = (event: BeforeUnloadEvent) => {
      if (isGuarded()) event.preventDefault();
    };
    window.addEventListener('beforeunload', onBeforeUnload);
    return () => window.removeEventListener('beforeunload', onBeforeUnload);
  }, [isGuarded]);
  return useBlocker(
    ({ currentLocation, nextLocation }) => isGuarded() && currentLocation.pathname !== nextLocation.pathname,
  );
}
