import { Group, Switch, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import { useId } from 'react';
import type { Subscription } from '../api/types.ts';

interface ActiveSwitchProps {
  subscription: Subscription;
  /** Why it cannot be switched, in words; null when it can. */
  refusal: string | null;
  onChange: (active: boolean) => void;
}

/** On or off, in a word as well. One that must not be used stays in the tab order and says why. */
export function ActiveSwitch({ subscription, refusal, onChange }: ActiveSwitchProps) {
  const { name, active } = subscription;
  const reasonId = useId();
  return (
    <Group gap={8} wrap="nowrap">
      <Tooltip
        label={refusal}
        disabled={refusal === null}
        events={{ hover: true, focus: true, touch: true }}
        multiline
        maw={320}
        refProp="rootRef"
      >
        <Switch
          size="sm"
          checked={active}
          aria-label={`${name} is active`}
          aria-disabled={refusal !== null}
          {...(refusal !== null && { 'aria-describedby': reasonId })}
          onChange={(event) => refusal === null && onChange(event.currentTarget.checked)}
          withThumbIndicator={false}
          style={refusal === null ? {} : { opacity: 0.65 }}
        />
      </Tooltip>
      <Text span size="sm" aria-hidden miw={24}>
        {active ? 'On' : 'Off'}
      </Text>
      {refusal !== null && <VisuallyHidden id={reasonId}>{refusal}</VisuallyHidden>}
    </Group>
  );
}
