import { Button, Group, Progress, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { logKey, recoveriesKey, stopRecovery } from '../api/deliveries.ts';
import type { WebhookKey } from '../api/subscriptions.ts';
import type { Recovery } from '../api/types.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import type { Tone } from '../wording/http-status.ts';
import { RecoverForm } from './recover-form.tsx';
import { describeProgress, describeWindow, formatOutcome } from './recover-wording.ts';
import classes from './webhook-facts.module.css';

interface RecoverDialogProps {
  webhook: WebhookKey;
  /** The latest recoveries, newest first. */
  recoveries: readonly Recovery[];
  running: Recovery | undefined;
  /** Reason why no recovery can be started; null if one can. */
  reason: string | null;
  /** Reason why the user may not change webhooks; null if the user may. */
  denialReason: string | null;
  onClose: () => void;
}

/** Shows the recovery that is running or was started here, otherwise the form; below it earlier recoveries. */
export default function RecoverDialog({
  webhook,
  recoveries,
  running,
  reason,
  denialReason,
  onClose,
}: RecoverDialogProps) {
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
          denialReason={denialReason}
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
              <Timestamp at={recovery.created_at} />: {describeWindow(recovery)}
            </Text>
            <Text size="sm" c="dimmed">
              {describeProgress(recovery)} {formatOutcome(recovery.outcome)}
            </Text>
          </li>
        ))}
      </Stack>
    </section>
  );
}

const STATES: Readonly<Record<string, { tone: Tone; label: string }>> = {
  running: { tone: 'waiting', label: 'Running' },
  done: { tone: 'good', label: 'Done' },
  cancelled: { tone: 'neutral', label: 'Cancelled' },
};

interface RecoveryProgressProps {
  webhook: WebhookKey;
  recovery: Recovery;
  denialReason: string | null;
  onAnother: () => void;
}

/** Progress of a recovery and outcome of its deliveries. Closing the dialog does not stop it. */
function RecoveryProgress({ webhook, recovery, denialReason, onAnother }: RecoveryProgressProps) {
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
  const { tone, label } = STATES[status] ?? { tone: 'neutral', label: status };
  return (
    <Stack>
      <Group>
        <StatusBadge tone={tone}>{label}</StatusBadge>
        <Text size="sm">{describeWindow(recovery)}</Text>
      </Group>
      <Progress value={status === 'done' ? 100 : share} aria-label="Deliveries queued again" />
      <Text size="sm" role="status">
        {describeProgress(recovery)} {formatOutcome(recovery.outcome)}
      </Text>
      {stop.isError && <Problem title="The recovery was not stopped" error={stop.error} />}
      {status === 'running' ? (
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            You can close this dialog: the recovery continues.
          </Text>
          <GuardedButton
            variant="default"
            reason={denialReason}
            loading={stop.isPending}
            onClick={() => stop.mutate()}
          >
            Stop
          </GuardedButton>
        </Group>
      ) : (
        <Group justify="flex-end">
          <Button variant="default" onClick={onAnother}>
            Send another time range
          </Button>
        </Group>
      )}
    </Stack>
  );
}
