import { type RefObject, useEffect, useRef, useState } from 'react';

/**
 * The text of a field whose value lives in the address. The address follows a moment later, so what is being typed is
 * the field's own; other changes of the address (back, cleared filters) reach it while it is not typed into.
 */
export function useTypedText(value: string): {
  text: string;
  setText: (text: string) => void;
  field: RefObject<HTMLInputElement | null>;
} {
  const [text, setText] = useState(value);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (document.activeElement !== field.current) setText(value);
  }, [value]);
  return { text, setText, field };
}
