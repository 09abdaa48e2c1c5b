import { Skeleton, Text } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { lazy, Suspense } from 'react';
import { useHasBeenTrue } from '../components/lazy-popover.tsx';
import { summarizeOptions } from './options-summary.ts';
import type { WebhookField } from './webhook-checks.ts';
import type { WebhookValues } from './webhook-values.ts';

const OptionFields = lazy(() => import('./option-fields.tsx'));

interface MoreOptionsProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
  isOpen: boolean;
  onToggle: (isOpen: boolean) => void;
  /** Field that gets the focus once the fields are rendered; a new object focuses it again. */
  focus: { field: WebhookField } | null;
}

/** The options that most webhooks leave unset: collapsed, with those that are set in one line. */
export function MoreOptions({ isOpen, onToggle, ...fields }: MoreOptionsProps) {
  const hasBeenOpened = useHasBeenTrue(isOpen);
  const summary = summarizeOptions(fields.form.values);
  return (
    <details open={isOpen} onToggle={(event) => onToggle(event.currentTarget.open)}>
      <Text component="summary" size="sm" fw={500} style={{ cursor: 'pointer' }}>
        More options
        <Text span size="sm" fw={400} c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {summary === '' ? ': filters, order, rate limit, headers, labels' : `: ${summary}`}
        </Text>
      </Text>
      {hasBeenOpened && (
        <Suspense fallback={<Skeleton height={400} mt="md" role="status" aria-label="Loading the options" />}>
          <OptionFields {...fields} />
        </Suspense>
      )}
    </details>
  );
}
