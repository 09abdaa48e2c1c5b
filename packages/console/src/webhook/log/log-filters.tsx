import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useAddressText, useDebouncedInput } from '../../components/typed-text.ts';
import { DELIVERY_STATUS_LABELS } from '../../wording/deliveries.ts';
import { EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../../wording/webhooks.ts';
import {
  hasFilters,
  isRunId,
  type LogAddress,
  NO_FILTERS,
  RANGE_LABELS,
  RANGES,
  STATUSES,
  timeWindow,
  toLocalText,
  windowProblem,
} from './log-address.ts';

interface LogFiltersProps {
  address: LogAddress;
  /** Called with the changed filters, `page` 1 and an empty `before`. */
  onChange: (part: Partial<LogAddress>) => void;
}

const HOUR_MS = 3_600_000;

export function LogFilters({ address, onChange }: LogFiltersProps) {
  const change = (part: Partial<LogAddress>) => onChange({ ...part, page: 1, before: '' });
  const changeRange = (range: LogAddress['range']) => {
    const isFresh = range === 'custom' && address.from === '';
    change({ range, ...(isFresh && { from: toLocalText(Date.now() - HOUR_MS), to: '' }) });
  };
  return (
    <Group gap="sm" align="flex-end" role="search" aria-label="Filter deliveries">
      <NativeSelect
        size="xs"
        label="Status"
        value={address.status}
        onChange={(event) => change({ status: event.currentTarget.value as LogAddress['status'] })}
        data={[
          { value: '', label: 'Any' },
          ...STATUSES.map((status) => ({ value: status, label: DELIVERY_STATUS_LABELS[status] })),
        ]}
      />
      <NativeSelect
        size="xs"
        label="Event"
        value={address.eventType}
        onChange={(event) => change({ eventType: event.currentTarget.value as LogAddress['eventType'] })}
        data={[
          { value: '', label: 'Any' },
          ...EVENT_TYPES_IN_ORDER.map((type) => ({ value: type, label: EVENT_TEXTS[type].label })),
        ]}
      />
      <NativeSelect
        size="xs"
        label="Time"
        value={address.range}
        onChange={(event) => changeRange(event.currentTarget.value as LogAddress['range'])}
        data={RANGES.map((range) => ({ value: range, label: RANGE_LABELS[range] }))}
      />
      {address.range === 'custom' && <CustomRange address={address} onChange={change} />}
      <RunFilter runId={address.runId} onChange={(runId) => change({ runId })} />
      {hasFilters(address) && (
        <Button size="xs" variant="subtle" onClick={() => onChange(NO_FILTERS)}>
          Clear filters
        </Button>
      )}
    </Group>
  );
}

function CustomRange({
  address,
  onChange,
}: {
  address: LogAddress;
  onChange: (part: Partial<LogAddress>) => void;
}) {
  const problem = windowProblem(timeWindow(address, 0));
  return (
    <>
      <TimeField label="From (your time)" value={address.from} onChange={(from) => onChange({ from })} />
      <TimeField
        label="To (empty: now)"
        value={address.to}
        error={problem}
        onChange={(to) => onChange({ to })}
      />
    </>
  );
}

interface TimeFieldProps {
  label: string;
  value: string;
  error?: string | null;
  onChange: (value: string) => void;
}

function TimeField({ label, value, error = null, onChange }: TimeFieldProps) {
  const { text, setText, field } = useAddressText(value);
  return (
    <TextInput
      ref={field}
      size="xs"
      type="datetime-local"
      label={label}
      value={text}
      error={error}
      onChange={(event) => {
        setText(event.currentTarget.value);
        onChange(event.currentTarget.value);
      }}
    />
  );
}

/** Reports its value once typing pauses. An invalid id is marked and not reported. */
function RunFilter({ runId, onChange }: { runId: string; onChange: (runId: string) => void }) {
  const { text, setText, field } = useAddressText(runId);
  const isWrong = text !== '' && !isRunId(text);
  const changeDebounced = useDebouncedInput((value) => {
    if (value === '' || isRunId(value)) onChange(value);
  });
  return (
    <TextInput
      ref={field}
      size="xs"
      label="Run id"
      inputMode="numeric"
      w={110}
      value={text}
      error={isWrong ? 'Digits only' : null}
      onChange={(event) => {
        const value = event.currentTarget.value.trim();
        setText(value);
        changeDebounced(value);
      }}
    />
  );
}
