import { useDebouncedCallback } from '@mantine/hooks';
import { type RefObject, useContext, useEffect, useRef, useState } from 'react';
import { UNSAFE_DataRouterContext as RouterContext, useLocation } from 'react-router';

/**
 * State of a field whose value is in the URL. The URL is updated with a delay, so the field keeps its own text while it has
 * the focus. Other changes of the URL (back, cleared filters) update it while it has not.
 */
export function useAddressText(value: string): {
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

export const TYPING_PAUSE_MS = 350;

/**
 * Calls `onInput` with the text once typing pauses, unless a link has been followed meanwhile: its page may still be
 * loading, and changing the URL would cancel that navigation.
 */
export function useDebouncedInput(
  onInput: (text: string) => void,
): ((text: string) => void) & { cancel: () => void } {
  const { pathname } = useLocation();
  const context = useContext(RouterContext);
  return useDebouncedCallback((text: string) => {
    // Reads the current state: `useNavigation` returns the last rendered one, which a busy browser renders long after a
    // click.
    const next = context?.router.state.navigation.location;
    if (next === undefined || next.pathname === pathname) onInput(text);
  }, TYPING_PAUSE_MS);
}
