import { Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { ApiError } from '../api/api-error.ts';
import { deleteSubscription, webhooksKey } from '../api/subscriptions.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { toastDone } from '../components/page.tsx';

interface DeleteDialogProps {
  accountId: number;
  /** Null: closed. */
  webhook: { id: string; name: string } | null;
  onClose: () => void;
  onDeleted?: () => void;
}

/** Asks whether the webhook is to go, by its name, and deletes it. */
export function DeleteDialog({ accountId, webhook, onClose, onDeleted }: DeleteDialogProps) {
  const client = useQueryClient();

  async function remove() {
    if (webhook === null) return;
    try {
      await deleteSubscription({ accountId, webhookId: webhook.id });
    } catch (error) {
      // Somebody else was faster: it is gone, which is what was wanted.
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
    toastDone(`“${webhook.name}” is deleted.`);
    onDeleted?.();
    await client.invalidateQueries({ queryKey: webhooksKey(accountId) });
  }

  return (
    <ConfirmDialog
      isOpen={webhook !== null}
      onClose={onClose}
      title={`Delete “${webhook?.name ?? ''}”?`}
      confirmLabel="Delete the webhook"
      cancelLabel="Keep it"
      isDangerous
      problemTitle="It was not deleted"
      onConfirm={remove}
    >
      <Text size="sm">
        Its endpoint is sent nothing more, from now on and for what is waiting to be retried. Its recent
        deliveries and its secret are gone with it. This cannot be undone.
      </Text>
    </ConfirmDialog>
  );
}
