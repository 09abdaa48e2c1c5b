import { TextInput } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { fromFieldValue, toFieldValue, utcMs } from './utc.ts';

interface UtcRangeProps {
  /** The event that the range is about: "Started". */
  what: string;
  /** UTC times as in the URL, or empty. */
  from: string;
  to: string;
  size?: 'xs' | 'sm';
  onChange: (part: { from: string } | { to: string }) => void;
}

/** Fields for the start and end of a range, in UTC like the URL. */
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

/** The field keeps its own text while it has the focus. Other changes of the URL update it while it has not. */
function UtcField({ size, label, value, error = null, onChange }: UtcFieldProps) {
  const [text, setText] = useState(toFieldValue(value));
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (document.activeElement !== field.current) setText(toFieldValue(value));
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
        onChange(fromFieldValue(event.currentTarget.value));
      }}
      onBlur={() => setText(toFieldValue(value))}
    />
  );
}
