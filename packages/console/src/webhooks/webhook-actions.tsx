import { ActionIcon, Group, Switch, Text, VisuallyHidden } from '@mantine/core';
import { IconDots } from '@tabler/icons-react';
import {
  type MutationKey,
  type QueryKey,
  useMutation,
  useMutationState,
  useQueryClient,
} from '@tanstack/react-query';
import { useId, useMemo } from 'react';
import { ApiError, describeProblem } from '../api/api-error.ts';
import { deleteSubscription, type SubscriptionPage, setActive, webhooksKey } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Hint, LazyPopover, lazyOverlay, type TriggerProps } from '../components/lazy-popover.tsx';
import { toastProblem, toastSuccess } from '../components/page.tsx';
import type { RowActionsProps } from './row-menu.tsx';
import classes from './webhook-list.module.css';

interface ActiveSwitchProps {
  subscription: Subscription;
  /** Reason why the webhook cannot be switched on or off; null if it can. */
  denialReason: string | null;
  onChange: (active: boolean) => void;
}

/** A switch with its state as text. A disabled switch stays in the tab order and shows the reason. */
export function ActiveSwitch({ subscription, denialReason, onChange }: ActiveSwitchProps) {
  const { name, active } = subscription;
  const reasonId = useId();
  const control = (
    <Switch
      size="sm"
      checked={active}
      aria-label={`${name} is active`}
      aria-disabled={denialReason !== null}
      {...(denialReason !== null && { 'aria-describedby': reasonId })}
      onChange={(event) => denialReason === null && onChange(event.currentTarget.checked)}
      withThumbIndicator={false}
      classNames={{ track: classes.switchTrack ?? '', thumb: classes.switchThumb ?? '' }}
      style={denialReason === null ? {} : { opacity: 0.65 }}
    />
  );
  return (
    <Group gap={8} wrap="nowrap">
      {denialReason === null ? (
        control
      ) : (
        <Hint label={denialReason}>{(target) => <div {...target}>{control}</div>}</Hint>
      )}
      <Text span size="sm" aria-hidden miw={24}>
        {active ? 'On' : 'Off'}
      </Text>
      {denialReason !== null && <VisuallyHidden id={reasonId}>{denialReason}</VisuallyHidden>}
    </Group>
  );
}

function changeActiveKey(accountId: number): MutationKey {
  return [...webhooksKey(accountId), 'active'];
}

interface ActiveChange {
  subscription: Subscription;
  active: boolean;
}

/**
 * Switches a webhook on or off. While the request is pending, pages show the wanted state on top of what they have loaded
 * (see `useShownActive`): a response that is older than the change, of whatever refreshes the page meanwhile, cannot undo it.
 */
export function useChangeActive(accountId: number) {
  const client = useQueryClient();
  const lists: QueryKey = [...webhooksKey(accountId), 'list'];
  const change = useMutation({
    mutationKey: changeActiveKey(accountId),
    mutationFn: ({ subscription: { id }, active }: ActiveChange) =>
      setActive({ accountId, webhookId: id }, active),
    onSuccess: async (_data, { subscription, active }) => {
      await client.cancelQueries({ queryKey: lists });
      client.setQueriesData<SubscriptionPage>(
        { queryKey: lists },
        (list) => list && { ...list, data: applyActiveChanges(list.data, [{ subscription, active }]) },
      );
      if (active) return toastSuccess(`“${subscription.name}” was switched on: events are sent again.`);
      // Events that occur while a webhook is off are never sent, so a wrong click must be easy to undo.
      toastSuccess(`“${subscription.name}” was switched off: no events are sent.`, {
        label: 'Switch it on again',
        onClick: () => change.mutate({ subscription: { ...subscription, active }, active: true }),
      });
    },
    onError: (error, { subscription, active }) => {
      const title = `“${subscription.name}” was not switched ${active ? 'on' : 'off'}`;
      toastProblem(title, describeProblem(error));
    },
    onSettled: (_data, error) => {
      const refreshed = client.invalidateQueries({ queryKey: webhooksKey(accountId) });
      // The switch shows the wanted state until the promise settles. After a failure it returns at once.
      return error === null ? refreshed : undefined;
    },
  });
  return change;
}

/** Applies pending changes of `useChangeActive` to webhooks of a list; null stays null. */
export function useShownActive(accountId: number, subscriptions: Subscription[] | null) {
  const pending = useMutationState({
    filters: { mutationKey: changeActiveKey(accountId), status: 'pending' },
    select: ({ state }) => state.variables as ActiveChange,
  });
  return useMemo(() => subscriptions && applyActiveChanges(subscriptions, pending), [subscriptions, pending]);
}

/** The last of several changes to one webhook applies. */
function applyActiveChanges(subscriptions: Subscription[], changes: readonly ActiveChange[]): Subscription[] {
  if (changes.length === 0) return subscriptions;
  const activeById = new Map(changes.map(({ subscription: { id }, active }) => [id, active]));
  return subscriptions.map((item) => ({ ...item, active: activeById.get(item.id) ?? item.active }));
}

const RowMenu = lazyOverlay(() => import('./row-menu.tsx'));

/** Menu of the actions on a webhook of the list. */
export function RowActions(props: RowActionsProps) {
  const trigger = (opens: TriggerProps) => (
    <ActionIcon
      {...opens}
      variant="subtle"
      color="gray"
      size="lg"
      aria-label={`More about ${props.subscription.name}`}
    >
      <IconDots size={18} aria-hidden />
    </ActionIcon>
  );
  return (
    <LazyPopover popup="menu" trigger={trigger}>
      <RowMenu {...props} trigger={trigger} />
    </LazyPopover>
  );
}

interface DeleteDialogProps {
  accountId: number;
  /** The webhook to delete; null if the dialog is closed. */
  webhook: { id: string; name: string } | null;
  onClose: () => void;
  onDeleted?: () => void;
}

/** Deletes a webhook after a confirmation. */
export function DeleteDialog({ accountId, webhook, onClose, onDeleted }: DeleteDialogProps) {
  const client = useQueryClient();

  async function remove() {
    if (webhook === null) return;
    try {
      await deleteSubscription({ accountId, webhookId: webhook.id });
    } catch (error) {
      // Another user has deleted it already, which is the wanted result.
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
    toastSuccess(`“${webhook.name}” was deleted.`);
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
      problemTitle="The webhook was not deleted"
      onConfirm={remove}
    >
      <Text size="sm">
        Nothing more is sent to its endpoint, not even pending retries. Its recent deliveries and its secret
        are removed with it. This cannot be undone.
      </Text>
    </ConfirmDialog>
  );
}
