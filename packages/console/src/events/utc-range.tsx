import { TextInput } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { fieldOf, utcMs, utcOfField } from './utc.ts';

interface UtcRangeProps {
  /** What happened in it: "Started". */
  what: string;
  /** UTC times of the address, or empty. */
  from: string;
  to: string;
  size?: 'xs' | 'sm';
  onChange: (part: { from: string } | { to: string }) => void;
}

/** From when to when, in UTC as the address has it. */
export function UtcRange({ what, from, to, size = 'sm', onChange }: UtcRangeProps) {
  const isWrong = from !== '' && to !== '' && utcMs(to) <= utcMs(from);
  return (
    <>
      <UtcField
        size={size}
        label={`${what} from (UTC)`}
        value={from}
        onChange={(value) => onChange({ from: value })}
      />
      <UtcField
        size={size}
        label="To (UTC; empty: now)"
        value={to}
        error={isWrong ? 'The end must be later than the start.' : null}
        onChange={(value) => onChange({ to: value })}
      />
    </>
  );
}

interface UtcFieldProps {
  size: 'xs' | 'sm';
  label: string;
  value: string;
  error?: string | null;
  onChange: (value: string) => void;
}

/** What is being typed is the field's own; other changes of the address reach it while it is not typed into. */
function UtcField({ size, label, value, error = null, onChange }: UtcFieldProps) {
  const [text, setText] = useState(fieldOf(value));
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (document.activeElement !== field.current) setText(fieldOf(value));
  }, [value]);
  return (
    <TextInput
      ref={field}
      size={size}
      type="datetime-local"
      step={1}
      label={label}
      value={text}
      error={error}
      onChange={(event) => {
        setText(event.currentTarget.value);
        onChange(utcOfField(event.currentTarget.value));
      }}
      onBlur={() => setText(fieldOf(value))}
    />
  );
}
