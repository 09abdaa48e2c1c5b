import { Group, Radio } from '@mantine/core';
import { type EventType, isEventType } from '@runhook/contract/event-types';
import { EVENT_TYPES_IN_ORDER, EVENT_WORDS } from '../words/webhooks.ts';

interface EventSelectProps {
  value: EventType;
  onChange: (type: EventType) => void;
}

/** Which event a sample is of: any, whichever the webhook fires for. */
export function EventSelect({ value, onChange }: EventSelectProps) {
  return (
    <Radio.Group
      label="Sample of"
      value={value}
      onChange={(chosen) => {
        if (isEventType(chosen)) onChange(chosen);
      }}
    >
      <Group gap="6px 16px" mt={4}>
        {EVENT_TYPES_IN_ORDER.map((type) => (
          <Radio key={type} value={type} label={EVENT_WORDS[type].label} />
        ))}
      </Group>
    </Radio.Group>
  );
}
