import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query';
import { subscriptionApi } from '../api/account-path.ts';
import { type Envelope, request } from '../api/request.ts';
import { webhooksKey } from '../api/subscription-queries.ts';
import { subscriptionRequest } from '../api/subscription-request.ts';
import type { Page, Subscription } from '../api/types.ts';
import { toastDone, toastProblem } from '../components/toast.ts';
import { problemWords } from '../words/problem.ts';

type List = Envelope<Subscription[], Page>;

/** Switches a webhook on or off. Lists show it at once, and again as it was when the server refuses. */
export function useChangeActive(accountId: number) {
  const client = useQueryClient();
  const lists: QueryKey = [...webhooksKey(accountId), 'list'];
  const show = (id: string, active: boolean) =>
    client.setQueriesData<List>({ queryKey: lists }, (list) =>
      list === undefined
        ? list
        : { ...list, data: list.data.map((item) => (item.id === id ? { ...item, active } : item)) },
    );

  return useMutation({
    mutationFn: async ({ subscription: { id }, active }: { subscription: Subscription; active: boolean }) => {
      const path = subscriptionApi(accountId, id);
      // A PUT writes every field: as they are now, not as they were when the list was loaded.
      const { data } = await request<Subscription>(path);
      await request(path, { method: 'PUT', body: { ...subscriptionRequest(data), active } });
    },
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
