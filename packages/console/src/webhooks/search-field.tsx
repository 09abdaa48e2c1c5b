import { CloseButton, TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';

const DEBOUNCE_MS = 250;
const CHARACTERS_MAX = 255;

/** Hands the text on when nobody has typed for a moment. */
export function SearchField({ value, onSearch }: { value: string; onSearch: (text: string) => void }) {
  const [text, setText] = useState(value);
  const handedOn = useRef(value);
  const handOn = useRef(onSearch);
  handOn.current = onSearch;

  // The address changed by another way than typing: back, a link.
  useEffect(() => {
    if (value === handedOn.current) return;
    handedOn.current = value;
    setText(value);
  }, [value]);

  useEffect(() => {
    const wanted = text.trim();
    if (wanted === handedOn.current) return;
    const timer = setTimeout(() => {
      handedOn.current = wanted;
      handOn.current(wanted);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [text]);

  return (
    <TextInput
      type="text"
      role="searchbox"
      aria-label="Search webhooks"
      placeholder="Search name, endpoint or description"
      value={text}
      maxLength={CHARACTERS_MAX}
      onChange={(event) => setText(event.currentTarget.value)}
      leftSection={<IconSearch size={16} aria-hidden />}
      rightSection={
        text !== '' && <CloseButton size="sm" aria-label="Clear the search" onClick={() => setText('')} />
      }
      flex={1}
      maw={420}
      miw={180}
    />
  );
}
