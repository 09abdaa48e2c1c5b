import { Button, Group, Radio, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { describeProblem } from '../api/api-error.ts';
import { fetchDeliveries, logKey, type RecoveryWindow, startRecovery } from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import type { Recovery } from '../api/types.ts';
import { Problem } from '../components/page.tsx';
import { toLocalText } from './log/log-address.ts';
import { describeMatchCount, findWindowProblem, toTimeWindow } from './recover-wording.ts';

interface RecoverFormProps {
  webhook: WebhookKey;
  onStarted: (recovery: Recovery) => void;
  onCancel: () => void;
}

const HOUR_MS = 3_600_000;

/** Selects a time range, and shows the number of deliveries before any is resent. */
export function RecoverForm({ webhook, onStarted, onCancel }: RecoverFormProps) {
  const client = useQueryClient();
  // An open end is fixed at the opening of the dialog: otherwise the count would change continuously.
  const [openedMs] = useState(() => Date.now());
  const [status, setStatus] = useState<RecoveryWindow['status']>('failed');
  const [from, setFrom] = useState(() => toLocalText(openedMs - HOUR_MS));
  const [to, setTo] = useState('');
  const window = toTimeWindow({ from, to }, openedMs);
  const inputProblem = findWindowProblem({ from, to }, window);
  const body: RecoveryWindow = { ...window, status };
  const count = useQuery({
    queryKey: [...logKey(webhook), 'recoverable', body],
    queryFn: ({ signal }) => fetchDeliveries(webhook, { ...body, limit: 1 }, signal),
    enabled: inputProblem === null,
    placeholderData: keepPreviousData,
  });
  const start = useMutation({
    mutationFn: () => startRecovery(webhook, body),
    onSuccess: (recovery) => {
      onStarted(recovery);
      void client.invalidateQueries({ queryKey: logKey(webhook) });
    },
  });
  const matching = inputProblem === null && !count.isPlaceholderData ? count.data?.totalCount : undefined;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (inputProblem === null && matching !== undefined && matching > 0) start.mutate();
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text size="sm">
          Use this after an outage of the endpoint: it resends deliveries that were created in this time range
          and did not arrive, at a rate that does not overload the endpoint. Each delivery keeps its event id.
        </Text>
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TextInput
            type="datetime-local"
            label="Since (your time)"
            required
            value={from}
            onChange={(event) => setFrom(event.currentTarget.value)}
            data-autofocus
          />
          <TextInput
            type="datetime-local"
            label="Until (empty: now)"
            value={to}
            error={inputProblem}
            onChange={(event) => setTo(event.currentTarget.value)}
          />
        </SimpleGrid>
        <Radio.Group
          label="Which deliveries"
          value={status}
          onChange={(value) => setStatus(value as RecoveryWindow['status'])}
        >
          <Stack gap={6} mt={6}>
            <Radio value="failed" label="Failed: all attempts failed" />
            <Radio value="cancelled" label="Cancelled: the webhook was switched off when they were due" />
          </Stack>
        </Radio.Group>
        <Text size="sm" role="status" fw={500}>
          {inputProblem === null &&
            describeMatchCount(matching, status, count.isError ? describeProblem(count.error) : null)}
        </Text>
        {start.isError && <Problem title="The recovery was not started" error={start.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={start.isPending} disabled={matching === undefined || matching === 0}>
            Resend them
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
