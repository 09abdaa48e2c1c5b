import { Button, Group, Progress, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { logKey, recoveryQuery } from '../../api/deliveries.ts';
import type { WebhookKey } from '../../api/subscriptions.ts';
import { Problem } from '../../components/page.tsx';
import { StatusBadge } from '../../components/state.tsx';
import type { Tone } from '../../words/http-status.ts';
import { progressWords } from './recover-words.ts';

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
export function RecoveryProgress({ webhook, recoveryId, onAnother }: RecoveryProgressProps) {
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
