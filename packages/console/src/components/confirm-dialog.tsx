import { Button, Group, Stack, Text } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';
import { type Blocker, useBlocker } from 'react-router';
import { Dialog } from './opened-later.tsx';
import { Problem } from './page.tsx';

interface ConfirmDialogProps {
  isOpen: boolean;
  onClose: () => void;
  /** A question that names what it is about. */
  title: string;
  /** What happens then, in words. */
  children: ReactNode;
  confirmLabel: string;
  cancelLabel?: string;
  /** It cannot be undone. */
  isDangerous?: boolean;
  /** The dialog closes when it resolves, and tells what went wrong when it rejects. */
  onConfirm: () => Promise<unknown> | unknown;
  /** Title of what went wrong. */
  problemTitle?: string;
}

/** Asks before something is done. The focus begins on the way out. */
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

/** Open while a navigation waits for an answer. */
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

/** Asks before the page is left while `isGuarded()`: by the router's blocker within the console, else by the browser. */
export function useLeaveGuard(isGuarded: () => boolean): Blocker {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => {
      if (isGuarded()) event.preventDefault();
    };
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [isGuarded]);
  return useBlocker(
    ({ currentLocation, nextLocation }) => isGuarded() && currentLocation.pathname !== nextLocation.pathname,
  );
}
