import { Group, Text } from '@mantine/core';
import type { Subscription } from '../api/types.ts';
import { Moment } from '../components/moment.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { statusTone, statusWords } from '../words/http-status.ts';

/** How the latest attempt ended, and when it was. */
export function LastStatus({ subscription }: { subscription: Subscription }) {
  const { http_status_code: code, dispatched_at } = subscription;
  return (
    <Group gap="2px 8px">
      <StatusBadge tone={statusTone(code)}>{statusWords(code)}</StatusBadge>
      {dispatched_at !== undefined && (
        <Text span size="xs" c="dimmed">
          <Moment at={dispatched_at} />
        </Text>
      )}
    </Group>
  );
}
