import { Text, Title, VisuallyHidden } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { activityKey } from '../api/activity.ts';
import { describeProblem } from '../api/api-error.ts';
import { deliveryQuery, redeliver } from '../api/deliveries.ts';
import { subscriptionQuery, type WebhookKey } from '../api/subscriptions.ts';
import type { Delivery, DeliveryDetail, Subscription } from '../api/types.ts';
import { CodeBlock, CopyButton } from '../components/copy.tsx';
import { GuardedButton } from '../components/guarded.tsx';
import { toastProblem, toastSuccess } from '../components/page.tsx';
import { curlCommand, formatJson } from '../wording/code.ts';

const HEIGHT_MAX = 520;

/** The payload, formatted; the copy button copies the exact bytes. */
export function PayloadSection({ delivery }: { delivery: DeliveryDetail }) {
  const { payload } = delivery;
  return (
    <section aria-labelledby="payload">
      <Title order={2} size="h4" id="payload" mb="sm">
        Payload
      </Title>
      {payload === null ? (
        <Text size="sm">The payload is no longer stored: its event was removed from the log.</Text>
      ) : (
        <>
          <CodeBlock
            label="Request body"
            code={formatJson(payload) ?? payload}
            copyValue={payload}
            wrap
            heightMax={HEIGHT_MAX}
          />
          <Text size="xs" c="dimmed" mt={4}>
            Formatted. Copying gives the exact bytes that were sent and signed.
          </Text>
        </>
      )}
    </section>
  );
}

/** Copies the request as a curl command with the exact body, for testing an endpoint. */
export function CopyAsCurl({
  delivery,
  webhook,
}: {
  delivery: DeliveryDetail;
  webhook: Pick<Subscription, 'client_url' | 'signature_header'> | undefined;
}) {
  const { payload } = delivery;
  const { client_url: url, signature_header: signatureHeader } = webhook ?? {};
  if (url === undefined)
    return <GuardedButton reason="The endpoint’s address is still loading.">Copy as curl</GuardedButton>;
  if (payload === null)
    return (
      <GuardedButton reason="The payload is no longer stored: its event was removed from the log.">
        Copy as curl
      </GuardedButton>
    );
  return (
    <CopyButton
      label="Copy as curl"
      what="the request as a curl command"
      size="sm"
      value={() => curlCommand({ url, body: payload, signatureHeader })}
    />
  );
}

interface RedeliverButtonProps {
  webhook: WebhookKey;
  delivery: Delivery;
  isActive: boolean;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
  /** Name of the webhook, if the button is one of several. */
  webhookName?: string;
}

const INACTIVE = 'The webhook is switched off. Switch it on to resend this delivery.';
const PENDING = 'This delivery is still pending.';

/** Button that queues the delivery again, in a new cycle of attempts. */
export function RedeliverButton({
  webhook,
  delivery,
  isActive,
  denialReason,
  webhookName,
}: RedeliverButtonProps) {
  const client = useQueryClient();
  const { queryKey } = deliveryQuery(webhook, delivery.id);
  const redelivery = useMutation({
    mutationFn: () => redeliver(webhook, delivery.id),
    onSuccess: (updated) => {
      toastSuccess('The delivery was queued again.');
      client.setQueryData<DeliveryDetail>(queryKey, (previous) => previous && { ...previous, ...updated });
      void client.invalidateQueries({ queryKey: activityKey(webhook.accountId) });
    },
    onError: (error) => {
      toastProblem('The delivery was not resent', describeProblem(error));
      void client.invalidateQueries({
        queryKey: subscriptionQuery(webhook).queryKey,
      });
    },
  });
  const state = delivery.status === 'pending' ? PENDING : isActive ? null : INACTIVE;
  return (
    <GuardedButton
      reason={denialReason ?? state}
      loading={redelivery.isPending}
      onClick={() => redelivery.mutate()}
      {...(webhookName !== undefined && { size: 'compact-sm', variant: 'default' })}
    >
      Redeliver
      {webhookName !== undefined && <VisuallyHidden> to {webhookName}</VisuallyHidden>}
    </GuardedButton>
  );
}
