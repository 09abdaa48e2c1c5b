import { Alert, Button, Stack, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { problemWords } from '../api/api-error.ts';

interface ProblemProps {
  /** What could not be done: "The webhooks could not be loaded". */
  title: string;
  error: unknown;
  onRetry?: () => void;
  isRetrying?: boolean;
}

/** What failed, why, and another try. Read out when it appears. */
export function Problem({ title, error, onRetry, isRetrying = false }: ProblemProps) {
  return (
    <Alert color="red" role="alert" title={title} icon={<IconAlertTriangle aria-hidden />}>
      <Stack align="flex-start" gap="sm">
        <Text size="sm">{problemWords(error)}</Text>
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={onRetry} loading={isRetrying}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
