import { Button, Checkbox, Group, Radio, SimpleGrid, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { describeProblem } from '../api/api-error.ts';
import { logKey, missedIntervalQuery, recoveryCountQuery, startRecovery } from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import type { Recovery } from '../api/types.ts';
import { Problem } from '../components/page.tsx';
import {
  canStart,
  describeCount,
  RECOVERY_CHOICES,
  type RecoveryChoice,
  toSelection,
} from './recover-choices.ts';
import { findWindowProblem, initialWindow, toTimeWindow, type WindowInput } from './recover-wording.ts';

/** Delay until a changed selection is counted: each count is a slow read, and an account has one slot for those. */
const DEBOUNCE_MS = 600;

interface RecoverFormProps {
  webhook: WebhookKey;
  onStarted: (recovery: Recovery) => void;
  onCancel: () => void;
}

/** The form for the time in which the webhook was off, or for the last hour if it was never off. */
export function RecoverForm(props: RecoverFormProps) {
  // An open end is fixed at the opening of the dialog: otherwise the count would change continuously.
  const [openedMs] = useState(() => Date.now());
  const missed = useQuery(missedIntervalQuery(props.webhook, openedMs));
  if (missed.isPending) return <Skeleton height={320} role="status" aria-label="Loading" />;
  return <WindowForm {...props} openedMs={openedMs} initial={initialWindow(missed.data, openedMs)} />;
}

/** Selects a time range, and shows the number of deliveries before any is sent. */
function WindowForm({
  webhook,
  onStarted,
  onCancel,
  openedMs,
  initial,
}: RecoverFormProps & { openedMs: number; initial: WindowInput }) {
  const client = useQueryClient();
  const [choice, setChoice] = useState<RecoveryChoice>('all');
  const [resendsDelivered, setResendsDelivered] = useState(false);
  const [{ from, to }, setInput] = useState(initial);
  const window = toTimeWindow({ from, to }, openedMs);
  const inputProblem = findWindowProblem({ from, to }, window);
  const body = { ...window, ...toSelection(choice, resendsDelivered) };
  const [settled] = useDebouncedValue(JSON.stringify(body), DEBOUNCE_MS);
  const isSettled = inputProblem === null && settled === JSON.stringify(body);
  const count = useQuery({
    ...recoveryCountQuery(webhook, JSON.parse(settled) as typeof body),
    enabled: isSettled,
  });
  const start = useMutation({
    mutationFn: () => startRecovery(webhook, body),
    onSuccess: (recovery) => {
      onStarted(recovery);
      void client.invalidateQueries({ queryKey: logKey(webhook) });
    },
  });
  const counted = isSettled && !count.isPlaceholderData ? count.data : undefined;
  const countError = isSettled && count.isError ? count.error : null;
  const isStartable = inputProblem === null && canStart(counted, countError !== null);
  function submit(event: FormEvent) {
    event.preventDefault();
    if (isStartable) start.mutate();
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text size="sm">
          Sends what did not arrive in this time range, at a rate that does not overload the endpoint: after
          an outage of the endpoint, or for the time in which the webhook was off or not created yet. Each
          delivery keeps its event id.
        </Text>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            type="datetime-local"
            label="Since (your time)"
            required
            value={from}
            onChange={(event) => setInput({ from: event.currentTarget.value, to })}
            data-autofocus
          />
          <TextInput
            type="datetime-local"
            label="Until (empty: now)"
            value={to}
            error={inputProblem}
            onChange={(event) => setInput({ from, to: event.currentTarget.value })}
          />
        </SimpleGrid>
        <Radio.Group
          label="What is sent"
          value={choice}
          onChange={(value) => setChoice(value as RecoveryChoice)}
        >
          <Stack gap={6} mt={6}>
            {Object.entries(RECOVERY_CHOICES).map(([value, label]) => (
              <Radio key={value} value={value} label={label} />
            ))}
          </Stack>
        </Radio.Group>
        {choice === 'all' && (
          <Checkbox
            label="Also what was delivered, a second time"
            checked={resendsDelivered}
            onChange={(event) => setResendsDelivered(event.currentTarget.checked)}
          />
        )}
        <Text size="sm" role="status" fw={500}>
          {inputProblem === null &&
            describeCount(
              counted,
              choice,
              resendsDelivered,
              countError === null ? null : describeProblem(countError),
            )}
        </Text>
        {start.isError && <Problem title="The recovery was not started" error={start.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={start.isPending} disabled={!isStartable}>
            Send them
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
