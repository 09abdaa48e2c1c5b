import { useMutation, useQueryClient } from '@tanstack/react-query';
import { problemWords } from '../api/api-error.ts';
import { deliveryQuery, redeliver } from '../api/deliveries.ts';
import { subscriptionQuery, type WebhookKey } from '../api/subscriptions.ts';
import type { Delivery, DeliveryDetail } from '../api/types.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { toastDone, toastProblem } from '../components/page.tsx';

interface RedeliverButtonProps {
  webhook: WebhookKey;
  delivery: Delivery;
  isActive: boolean;
  /** Why the caller may not change webhooks; null when it may. */
  refusal: string | null;
}

const INACTIVE = 'The webhook is switched off. Switch it on to send this again.';
const PENDING = 'It is still being delivered.';

/** Sends it again. What comes of it appears among the attempts. */
export function RedeliverButton({ webhook, delivery, isActive, refusal }: RedeliverButtonProps) {
  const client = useQueryClient();
  const { queryKey } = deliveryQuery(webhook, delivery.id);
  const again = useMutation({
    mutationFn: () => redeliver(webhook, delivery.id),
    onSuccess: (now) => {
      toastDone('It is being sent again.');
      client.setQueryData<DeliveryDetail>(queryKey, (before) => before && { ...before, ...now });
    },
    onError: (error) => {
      toastProblem('It was not sent again', problemWords(error));
      void client.invalidateQueries({
        queryKey: subscriptionQuery(webhook).queryKey,
      });
    },
  });
  const state = delivery.status === 'pending' ? PENDING : isActive ? null : INACTIVE;
  return (
    <GuardedButton reason={refusal ?? state} loading={again.isPending} onClick={() => again.mutate()}>
      Redeliver
    </GuardedButton>
  );
}
