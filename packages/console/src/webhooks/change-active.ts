import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { problemWords } from '../api/api-error.ts';
import { type SubscriptionPage, setActive, webhooksKey } from '../api/subscriptions.ts';
import type { Subscription } from '../api/types.ts';
import { toastDone, toastProblem } from '../components/page.tsx';

/** Switches a webhook on or off. Lists show it at once, and again as it was when the server refuses. */
export function useChangeActive(accountId: number) {
  const client = useQueryClient();
  const lists: QueryKey = [...webhooksKey(accountId), 'list'];
  const show = (id: string, active: boolean) =>
    client.setQueriesData<SubscriptionPage>({ queryKey: lists }, (list) =>
      list === undefined
        ? list
        : { ...list, data: list.data.map((item) => (item.id === id ? { ...item, active } : item)) },
    );

  return useMutation({
    mutationFn: ({ subscription: { id }, active }: { subscription: Subscription; active: boolean }) =>
      setActive({ accountId, webhookId: id }, active),
    onMutate: async ({ subscription, active }) => {
      await client.cancelQueries({ queryKey: lists });
      show(subscription.id, active);
    },
    onSuccess: (_data, { subscription, active }) =>
      toastDone(
        active
          ? `“${subscription.name}” is active: it is sent events again.`
          : `“${subscription.name}” is switched off: it is sent nothing.`,
      ),
    onError: (error, { subscription, active }) => {
      show(subscription.id, !active);
      const title = `“${subscription.name}” was not switched ${active ? 'on' : 'off'}`;
      toastProblem(title, problemWords(error));
    },
    onSettled: () => client.invalidateQueries({ queryKey: webhooksKey(accountId) }),
  });
}
