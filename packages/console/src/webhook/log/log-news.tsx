import { Alert, Button, Group, Text, VisuallyHidden } from '@mantine/core';
import { IconActivity, IconPlugX } from '@tabler/icons-react';
import { problemWords } from '../../api/api-error.ts';
import { elsewhereWords } from './log-words.ts';
import { useAnnouncement } from './use-announcement.ts';
import type { DeliveryLog } from './use-delivery-log.ts';

interface LogNewsProps {
  log: DeliveryLog;
  isFirstPage: boolean;
  onShowNewest: () => void;
}

/** Whether the log is live, and what came that the rows do not show. */
export function LogNews({ log, isFirstPage, onShowNewest }: LogNewsProps) {
  const words = useAnnouncement(log.newCount, log.shown?.view ?? '');
  return (
    <Group gap="xs">
      <VisuallyHidden role="status">{words}</VisuallyHidden>
      {log.error !== null && log.shown !== null && !log.isBehind ? (
        <Alert color="orange" py={6} icon={<IconPlugX aria-hidden />} title="Not live at the moment">
          <Text size="sm">{problemWords(log.error)} This page keeps trying.</Text>
        </Alert>
      ) : (
        isFirstPage &&
        log.error === null &&
        log.shown !== null && (
          <Text
            size="xs"
            c="dimmed"
            component="span"
            style={{ display: 'inline-flex', gap: 4, alignItems: 'center' }}
          >
            <IconActivity size={14} aria-hidden /> Live: new deliveries appear by themselves
          </Text>
        )
      )}
      {log.elsewhereCount > 0 && (
        <Text size="sm">
          {elsewhereWords(log.elsewhereCount, isFirstPage)}{' '}
          <Button size="compact-xs" variant="default" onClick={onShowNewest}>
            Show the newest
          </Button>
        </Text>
      )}
    </Group>
  );
}
