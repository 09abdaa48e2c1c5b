import { Button, Group, Input, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { LIMITS } from './webhook-checks.ts';
import type { CustomHeader } from './webhook-values.ts';

interface HeadersFieldProps {
  value: readonly CustomHeader[];
  onChange: (headers: CustomHeader[]) => void;
  error?: string | undefined;
}

/** Rows of custom headers. Stored values are not shown; an empty field keeps the stored value. */
export function HeadersField({ value, onChange, error }: HeadersFieldProps) {
  const change = (index: number, changes: Partial<CustomHeader>) =>
    onChange(value.map((header, at) => (at === index ? { ...header, ...changes } : header)));
  return (
    <fieldset data-path="headers" style={{ border: 0, padding: 0, margin: 0, minWidth: 0 }}>
      <Text component="legend" size="sm" fw={500} p={0}>
        Custom headers
      </Text>
      <Input.Description>
        Sent with every delivery, for example the API key of a gateway. Values are stored encrypted and not
        shown again.
      </Input.Description>
      <Stack gap="xs" mt="xs">
        {value.map((header, index) => (
          <Group key={header.key} gap="xs" align="flex-end" wrap="nowrap">
            <TextInput
              label={`Header ${index + 1}`}
              placeholder="X-Gateway-Key"
              maxLength={LIMITS.headerName}
              spellCheck={false}
              value={header.name}
              // A renamed header has no stored value.
              onChange={(event) => change(index, { name: event.currentTarget.value, isStored: false })}
              style={{ flex: 1 }}
            />
            <PasswordInput
              label={`Value ${index + 1}`}
              placeholder={header.isStored ? 'Unchanged' : ''}
              maxLength={LIMITS.headerValue}
              autoComplete="off"
              value={header.value}
              onChange={(event) => change(index, { value: event.currentTarget.value })}
              style={{ flex: 1 }}
            />
            <Button
              variant="default"
              aria-label={`Remove header ${index + 1}`}
              onClick={() => onChange(value.filter((_, at) => at !== index))}
            >
              Remove
            </Button>
          </Group>
        ))}
        {error !== undefined && <Input.Error role="alert">{error}</Input.Error>}
        {value.length < LIMITS.headers && (
          <Group>
            <Button
              variant="default"
              size="xs"
              leftSection={<IconPlus size={14} aria-hidden />}
              onClick={() => onChange([...value, newHeader()])}
            >
              Add a header
            </Button>
          </Group>
        )}
      </Stack>
    </fieldset>
  );
}

function newHeader(): CustomHeader {
  return { key: crypto.randomUUID(), name: '', value: '', isStored: false };
}
