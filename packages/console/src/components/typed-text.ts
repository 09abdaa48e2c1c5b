import { useDebouncedCallback } from '@mantine/hooks';
import { type RefObject, useContext, useEffect, useRef, useState } from 'react';
import { UNSAFE_DataRouterContext as RouterContext, useLocation } from 'react-router';

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

export const TYPING_PAUSE_MS = 350;

/**
 * Tells what was typed once the typing pauses, unless a link is followed by then: its page may still be on its way, and the
 * address, set anew for what was typed, would call it off.
 */
export function useOncePaused(
  tell: (text: string) => void,
): ((text: string) => void) & { cancel: () => void } {
  const { pathname } = useLocation();
  const context = useContext(RouterContext);
  return useDebouncedCallback((text: string) => {
    // As it is now: `useNavigation` has what was drawn last, and a busy browser draws what a click began a good while later.
    const next = context?.router.state.navigation.location;
    if (next === undefined || next.pathname === pathname) tell(text);
  }, TYPING_PAUSE_MS);
}
