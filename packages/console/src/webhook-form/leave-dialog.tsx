import { Text } from '@mantine/core';
import type { Blocker } from 'react-router';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';

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
