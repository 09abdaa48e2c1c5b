import { Button, Group, Modal, Progress, Radio, SimpleGrid, Stack, Text, TextInput } from '@mantine/core';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { problemWords } from '../api/api-error.ts';
import {
  fetchDeliveries,
  logKey,
  type RecoveryWindow,
  recoveryQuery,
  startRecovery,
} from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import type { Recovery } from '../api/types.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { StatusBadge } from '../components/state.tsx';
import type { Tone } from '../words/http-status.ts';
import { localOf } from './log/log-address.ts';
import { matchWords, progressWords, recoverWindow, windowRefusal } from './recover-words.ts';

interface RecoverProps {
  webhook: WebhookKey;
  isActive: boolean;
  /** Why the caller may not change webhooks; null when it may. */
  refusal: string | null;
}

const INACTIVE = 'The webhook is switched off. Switch it on to send deliveries again.';

/** Sends again what failed in a window of time. */
export function Recover({ webhook, isActive, refusal }: RecoverProps) {
  const [isOpen, setOpen] = useState(false);
  const [recoveryId, setRecoveryId] = useState<string | null>(null);
  return (
    <>
      <GuardedButton
        size="xs"
        variant="default"
        reason={refusal ?? (isActive ? null : INACTIVE)}
        onClick={() => setOpen(true)}
      >
        {recoveryId === null ? 'Recover a time window' : 'Recovery'}
      </GuardedButton>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Recover a time window"
        size="lg"
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {recoveryId === null ? (
          <RecoverForm
            webhook={webhook}
            onStarted={({ id }) => setRecoveryId(id)}
            onCancel={() => setOpen(false)}
          />
        ) : (
          <RecoveryProgress webhook={webhook} recoveryId={recoveryId} onAnother={() => setRecoveryId(null)} />
        )}
      </Modal>
    </>
  );
}

interface RecoverFormProps {
  webhook: WebhookKey;
  onStarted: (recovery: Recovery) => void;
  onCancel: () => void;
}

const HOUR_MS = 3_600_000;

/** Which window, and how many deliveries that comes to, before anything is sent. */
function RecoverForm({ webhook, onStarted, onCancel }: RecoverFormProps) {
  const client = useQueryClient();
  // What was there when the dialog was opened: an end that moves would make the count say something else.
  const [openedMs] = useState(() => Date.now());
  const [status, setStatus] = useState<RecoveryWindow['status']>('failed');
  const [from, setFrom] = useState(() => localOf(openedMs - HOUR_MS));
  const [to, setTo] = useState('');
  const window = recoverWindow({ from, to }, openedMs);
  const refusal = windowRefusal({ from, to }, window);
  const body: RecoveryWindow = { ...window, status };
  const count = useQuery({
    queryKey: [...logKey(webhook), 'recoverable', body],
    queryFn: ({ signal }) => fetchDeliveries(webhook, { ...body, limit: 1 }, signal),
    enabled: refusal === null,
    placeholderData: keepPreviousData,
  });
  const start = useMutation({
    mutationFn: () => startRecovery(webhook, body),
    onSuccess: (recovery) => {
      onStarted(recovery);
      void client.invalidateQueries({ queryKey: logKey(webhook) });
    },
  });
  const matching = refusal === null && !count.isPlaceholderData ? count.data?.totalCount : undefined;
  function submit(event: FormEvent) {
    event.preventDefault();
    if (refusal === null && matching !== undefined && matching > 0) start.mutate();
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text size="sm">
          After the endpoint was down: sends again what was created in this time and did not arrive, at a pace
          that does not overwhelm the endpoint. Each is the same delivery, with the same event id.
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
            error={refusal}
            onChange={(event) => setTo(event.currentTarget.value)}
          />
        </SimpleGrid>
        <Radio.Group
          label="Which deliveries"
          value={status}
          onChange={(value) => setStatus(value as RecoveryWindow['status'])}
        >
          <Stack gap={6} mt={6}>
            <Radio value="failed" label="Failed: every attempt was made and failed" />
            <Radio value="cancelled" label="Cancelled: the webhook was switched off when their turn came" />
          </Stack>
        </Radio.Group>
        <Text size="sm" role="status" fw={500}>
          {refusal === null && matchWords(matching, status, count.isError ? problemWords(count.error) : null)}
        </Text>
        {start.isError && <Problem title="The recovery was not started" error={start.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" loading={start.isPending} disabled={matching === undefined || matching === 0}>
            Send them again
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const STATES: Readonly<Record<string, { tone: Tone; words: string }>> = {
  running: { tone: 'waiting', words: 'Running' },
  done: { tone: 'good', words: 'Done' },
  cancelled: { tone: 'neutral', words: 'Cancelled' },
};

interface RecoveryProgressProps {
  webhook: WebhookKey;
  recoveryId: string;
  onAnother: () => void;
}

/** How far a recovery is, until it has ended. It goes on when this is closed. */
function RecoveryProgress({ webhook, recoveryId, onAnother }: RecoveryProgressProps) {
  const client = useQueryClient();
  const recovery = useQuery(recoveryQuery(webhook, recoveryId));
  const status = recovery.data?.status;
  useEffect(() => {
    if (status === 'done') void client.invalidateQueries({ queryKey: [...logKey(webhook), 'page'] });
  }, [status, client, webhook]);
  if (recovery.isError && recovery.data === undefined) {
    return (
      <Problem
        title="The recovery was started; how far it is could not be read"
        error={recovery.error}
        onRetry={() => void recovery.refetch()}
      />
    );
  }
  if (recovery.data === undefined || status === undefined) return <Text size="sm">Starting…</Text>;
  const { total_count, recovered_count } = recovery.data;
  const share = total_count === 0 ? 100 : (recovered_count / total_count) * 100;
  const { tone, words } = STATES[status] ?? { tone: 'neutral', words: status };
  return (
    <Stack>
      <Group>
        <StatusBadge tone={tone}>{words}</StatusBadge>
      </Group>
      <Progress value={status === 'done' ? 100 : share} aria-label="Deliveries put back into the queue" />
      <Text size="sm" role="status">
        {progressWords(recovery.data)}
      </Text>
      {status === 'running' ? (
        <Text size="sm" c="dimmed">
          You may close this: the recovery goes on.
        </Text>
      ) : (
        <Group justify="flex-end">
          <Button variant="default" onClick={onAnother}>
            Recover another window
          </Button>
        </Group>
      )}
    </Stack>
  );
}
