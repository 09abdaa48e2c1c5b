import { Checkbox, Group } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { MatchCount } from './match-count.tsx';
import { ResourceSelect } from './resource-select.tsx';
import type { WebhookValues } from './webhook-values.ts';

const RUN_STATUSES = [
  { value: '3', label: 'Running' },
  { value: '10', label: 'Succeeded' },
  { value: '20', label: 'Errored' },
] as const;

interface FilterFieldsProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
}

/** Filters by run status, environment and project, with the share of recent events that matches. */
export function FilterFields({ accountId, form }: FilterFieldsProps) {
  return (
    <>
      <Checkbox.Group
        label="Run status"
        description="Leave all off for any status. With “Errored” alone, a completed run is sent only if it failed."
        {...form.getInputProps('runStatuses')}
      >
        <Group gap="6px 16px" mt={6}>
          {RUN_STATUSES.map(({ value, label }) => (
            <Checkbox key={value} value={value} label={label} />
          ))}
        </Group>
      </Checkbox.Group>
      <ResourceSelect
        accountId={accountId}
        kind="environments"
        label="Environments"
        singular="Environment"
        {...form.getInputProps('environmentIds')}
        value={form.values.environmentIds}
      />
      <ResourceSelect
        accountId={accountId}
        kind="projects"
        label="Projects"
        singular="Project"
        {...form.getInputProps('projectIds')}
        value={form.values.projectIds}
      />
      <MatchCount accountId={accountId} values={form.values} />
    </>
  );
}
