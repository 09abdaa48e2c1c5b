import { Button, Group, Input, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { LIMITS } from './webhook-checks.ts';
import type { Label } from './webhook-values.ts';

interface LabelsFieldProps {
  value: readonly Label[];
  onChange: (labels: Label[]) => void;
  error?: string | undefined;
}

/** Rows of labels, by which lists and tools select webhooks. */
export function LabelsField({ value, onChange, error }: LabelsFieldProps) {
  const change = (index: number, changes: Partial<Label>) =>
    onChange(value.map((label, at) => (at === index ? { ...label, ...changes } : label)));
  return (
    <fieldset data-path="labels" style={{ border: 0, padding: 0, margin: 0, minWidth: 0 }}>
      <Text component="legend" size="sm" fw={500} p={0}>
        Labels
      </Text>
      <Input.Description>Names with values, to find webhooks by: a team, a stage.</Input.Description>
      <Stack gap="xs" mt="xs">
        {value.map((label, index) => (
          <Group key={label.key} gap="xs" align="flex-end" wrap="nowrap">
            <TextInput
              label={`Label ${index + 1}`}
              placeholder="team"
              maxLength={LIMITS.labelName}
              spellCheck={false}
              value={label.name}
              onChange={(event) => change(index, { name: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <TextInput
              label={`Value of label ${index + 1}`}
              maxLength={LIMITS.labelValue}
              spellCheck={false}
              value={label.value}
              onChange={(event) => change(index, { value: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <Button
              variant="default"
              aria-label={`Remove label ${index + 1}`}
              onClick={() => onChange(value.filter((_, at) => at !== index))}
            >
              Remove
            </Button>
          </Group>
        ))}
        {error !== undefined && <Input.Error role="alert">{error}</Input.Error>}
        {value.length < LIMITS.labels && (
          <Group>
            <Button
              variant="default"
              size="xs"
              leftSection={<IconPlus size={14} aria-hidden />}
              onClick={() => onChange([...value, { key: crypto.randomUUID(), name: '', value: '' }])}
            >
              Add a label
            </Button>
          </Group>
        )}
      </Stack>
    </fieldset>
  );
}
