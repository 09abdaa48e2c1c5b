import type { UseFormReturnType } from '@mantine/form';
import type { WebhookField } from './webhook-checks.ts';
import type { WebhookValues } from './webhook-values.ts';

/** Focuses the input of a field, or the first one of a group. */
export function focusField(form: UseFormReturnType<WebhookValues>, field: WebhookField): void {
  const node = form.getInputNode(field);
  (node?.matches('input, textarea, select') ? node : node?.querySelector('input'))?.focus();
}
