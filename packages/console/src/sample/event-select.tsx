import { NativeSelect } from '@mantine/core';
import { type EventType, isEventType } from '@runhook/contract/event-types';
import { EVENT_TYPES_IN_ORDER, EVENT_WORDS } from '../words/webhooks.ts';

interface EventSelectProps {
  value: EventType;
  onChange: (type: EventType) => void;
}

/** Which event a sample is of: any, whichever the webhook fires for. */
export function EventSelect({ value, onChange }: EventSelectProps) {
  return (
    <NativeSelect
      label="Sample of"
      data={EVENT_TYPES_IN_ORDER.map((type) => ({
        value: type,
        label: `${EVENT_WORDS[type].label} (${type})`,
      }))}
      value={value}
      onChange={({ currentTarget }) => {
        if (isEventType(currentTarget.value)) onChange(currentTarget.value);
      }}
    />
  );
}
