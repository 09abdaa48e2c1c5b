import {
  Button,
  Group,
  Modal,
  Progress,
  Radio,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useState } from 'react';
import { problemWords } from '../api/api-error.ts';
import {
  fetchDeliveries,
  logKey,
  type RecoveryWindow,
  recoveriesKey,
  recoveriesQuery,
  startRecovery,
  stopRecovery,
} from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import type { Recovery } from '../api/types.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { Moment, StatusBadge } from '../components/state.tsx';
import type { Tone } from '../words/http-status.ts';
import { localOf } from './log/log-address.ts';
import {
  matchWords,
  outcomeWords,
  progressWords,
  recoverWindow,
  shareWords,
  windowRefusal,
  windowWords,
} from './recover-words.ts';
import classes from './webhook-facts.module.css';

interface RecoverProps {
  webhook: WebhookKey;
  isActive: boolean;
  /** Why the caller may not change webhooks; null when it may. */
  refusal: string | null;
}

const INACTIVE = 'The webhook is switched off. Switch it on to send deliveries again.';

/** Sends again what failed in a window of time, and tells of the recoveries there were: one may run since yesterday. */
export function Recover({ webhook, isActive, refusal }: RecoverProps) {
  const [isOpen, setOpen] = useState(false);
  const recoveries = useQuery(recoveriesQuery(webhook));
  const all = recoveries.data ?? [];
  const running = all.find(({ status }) => status === 'running');
  const reason = refusal ?? (isActive ? null : INACTIVE);
  return (
    <>
      <GuardedButton
        size="xs"
        variant="default"
        reason={all.length > 0 ? null : reason}
        onClick={() => setOpen(true)}
      >
        {running === undefined ? 'Recover a time window' : `Recovery: ${shareWords(running)}`}
      </GuardedButton>
      <Modal
        opened={isOpen}
        onClose={() => setOpen(false)}
        title="Recover a time window"
        size="lg"
        centered
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        <RecoverDialog
          webhook={webhook}
          recoveries={all}
          running={running}
          reason={reason}
          refusal={refusal}
          onClose={() => setOpen(false)}
        />
      </Modal>
    </>
  );
}

interface RecoverDialogProps {
  webhook: WebhookKey;
  /** The latest, newest first. */
  recoveries: readonly Recovery[];
  running: Recovery | undefined;
  /** Why no recovery can be started; null when one can. */
  reason: string | null;
  /** Why the caller may not change webhooks; null when it may. */
  refusal: string | null;
  onClose: () => void;
}

/** The recovery that runs or was started here, else the form for one; below it those before. */
function RecoverDialog({ webhook, recoveries, running, reason, refusal, onClose }: RecoverDialogProps) {
  const client = useQueryClient();
  const [startedId, setStartedId] = useState<string | null>(null);
  const shown = running ?? recoveries.find(({ id }) => id === startedId);
  const earlier = recoveries.filter(({ id }) => id !== shown?.id);
  return (
    <Stack>
      {shown !== undefined && (
        <RecoveryProgress
          webhook={webhook}
          recovery={shown}
          refusal={refusal}
          onAnother={() => setStartedId(null)}
        />
      )}
      {shown === undefined && reason === null && (
        <RecoverForm
          webhook={webhook}
          onStarted={(recovery) => {
            setStartedId(recovery.id);
            client.setQueryData<Recovery[]>(recoveriesKey(webhook), (before = []) => [recovery, ...before]);
          }}
          onCancel={onClose}
        />
      )}
      {shown === undefined && reason !== null && <Text size="sm">{reason}</Text>}
      {earlier.length > 0 && <EarlierRecoveries recoveries={earlier} />}
    </Stack>
  );
}

function EarlierRecoveries({ recoveries }: { recoveries: readonly Recovery[] }) {
  return (
    <section aria-labelledby="earlier-recoveries">
      <Title order={3} size="h5" id="earlier-recoveries" mb={4}>
        Earlier recoveries
      </Title>
      <Stack gap="xs" component="ul" className={classes.plain ?? ''}>
        {recoveries.map((recovery) => (
          <li key={recovery.id}>
            <Text size="sm">
              <Moment at={recovery.created_at} />: {windowWords(recovery)}
            </Text>
            <Text size="sm" c="dimmed">
              {progressWords(recovery)} {outcomeWords(recovery.outcome)}
            </Text>
          </li>
        ))}
      </Stack>
    </section>
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
  recovery: Recovery;
  refusal: string | null;
  onAnother: () => void;
}

/** How far a recovery is, and what became of what it sent. It goes on when this is closed. */
function RecoveryProgress({ webhook, recovery, refusal, onAnother }: RecoveryProgressProps) {
  const client = useQueryClient();
  const { id, status, total_count, recovered_count } = recovery;
  useEffect(() => {
    if (status === 'done') void client.invalidateQueries({ queryKey: [...logKey(webhook), 'page'] });
  }, [status, client, webhook]);
  const stop = useMutation({
    mutationFn: () => stopRecovery(webhook, id),
    onSettled: () => client.invalidateQueries({ queryKey: recoveriesKey(webhook) }),
  });
  const share = total_count === 0 ? 100 : (recovered_count / total_count) * 100;
  const { tone, words } = STATES[status] ?? { tone: 'neutral', words: status };
  return (
    <Stack>
      <Group>
        <StatusBadge tone={tone}>{words}</StatusBadge>
        <Text size="sm">{windowWords(recovery)}</Text>
      </Group>
      <Progress value={status === 'done' ? 100 : share} aria-label="Deliveries put back into the queue" />
      <Text size="sm" role="status">
        {progressWords(recovery)} {outcomeWords(recovery.outcome)}
      </Text>
      {stop.isError && <Problem title="The recovery was not stopped" error={stop.error} />}
      {status === 'running' ? (
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            You may close this: the recovery goes on.
          </Text>
          <GuardedButton
            variant="default"
            reason={refusal}
            loading={stop.isPending}
            onClick={() => stop.mutate()}
          >
            Stop it
          </GuardedButton>
        </Group>
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
