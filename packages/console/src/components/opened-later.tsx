import { VisuallyHidden } from '@mantine/core';
import { useNotifications } from '@mantine/notifications';
import {
  type ComponentType,
  lazy,
  type PointerEvent,
  type ReactElement,
  type ReactNode,
  type RefObject,
  Suspense,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';

// What opens over a page is a third of the library: it is fetched when somebody first moves a pointer or presses a key, which
// comes before whatever opens it, and drawn when it is asked for.
const library = () => import('./opened.tsx');
const LazyModal = lazy(async () => ({ default: (await library()).Modal }));
const LazyTooltip = lazy(async () => ({ default: (await library()).Tooltip }));
const LazyNotifications = lazy(async () => ({ default: (await library()).Notifications }));

const waiting = new Set<() => Promise<unknown>>([library]);
const SIGNS_OF_LIFE = ['pointermove', 'pointerdown', 'keydown'] as const;

/** Where short messages appear. It is there before the first, so that it is read out, and fetches what can be opened. */
export function Toasts() {
  const { notifications } = useNotifications();
  const [isUsed, setUsed] = useState(false);
  const isNeeded = useWasTrue(isUsed || notifications.length > 0);
  useEffect(() => {
    const first = new AbortController();
    const begin = () => {
      first.abort();
      setUsed(true);
      // Whatever fails is fetched again when it is asked for.
      for (const load of waiting) load().catch(() => {});
    };
    for (const sign of SIGNS_OF_LIFE) document.addEventListener(sign, begin, { signal: first.signal });
    return () => first.abort();
  }, []);
  if (!isNeeded) return null;
  return (
    <Suspense>
      <LazyNotifications position="bottom-right" aria-live="polite" />
    </Suspense>
  );
}

type ModalProps = Parameters<typeof LazyModal>[0];

/** A dialog of the library. One that was closed stays, so that it can go as it came. */
export function Dialog(props: ModalProps) {
  const wasOpened = useWasTrue(props.opened);
  if (!wasOpened) return null;
  return (
    <Suspense>
      <LazyModal centered closeButtonProps={{ 'aria-label': 'Close' }} {...props} />
    </Suspense>
  );
}

export function useWasTrue(is: boolean): boolean {
  const was = useRef(false);
  was.current ||= is;
  return was.current;
}

export interface TriggerProps {
  ref?: RefObject<HTMLButtonElement | null>;
  onClick?: () => void;
  'aria-haspopup'?: 'menu' | 'listbox';
  'aria-expanded'?: boolean;
}

export interface OpenedProps {
  /** Draws the button that opens it. */
  trigger: (props: TriggerProps) => ReactElement;
}

/** A component that is fetched with the others that open over a page. */
export function fetchedLater<Props>(load: () => Promise<{ default: ComponentType<Props> }>) {
  waiting.add(load);
  return lazy(load);
}

interface OpenedLaterProps extends OpenedProps {
  popup: 'menu' | 'listbox';
  /** The button again, with what it opens. */
  children: ReactNode;
}

/** A button, and what takes its place when it is pressed for the first time. */
export function OpenedLater({ popup, trigger, children }: OpenedLaterProps) {
  const [isAsked, setAsked] = useState(false);
  const closed = trigger({
    'aria-haspopup': popup,
    'aria-expanded': false,
    onClick: () => setAsked(true),
  });
  return isAsked ? <Suspense fallback={closed}>{children}</Suspense> : closed;
}

const HINT_AFTER_MS = 150;

export interface HintTarget {
  'aria-describedby'?: string;
  /** Not `Enter`, which is not told of an element that appears under the pointer. */
  onPointerOver: (event: PointerEvent<HTMLElement>) => void;
  onPointerLeave: () => void;
  onFocus: (event: { currentTarget: HTMLElement; target: EventTarget }) => void;
  onBlur: () => void;
  onKeyDown: (event: { key: string }) => void;
}

/** Words over an element while it has the pointer or, by keyboard, the focus. They must be nowhere else needed. */
export function Hint({ label, children }: { label: ReactNode; children: (target: HintTarget) => ReactNode }) {
  const id = useId();
  const [element, setElement] = useState<HTMLElement | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const close = () => {
    clearTimeout(timer.current);
    setElement(null);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <>
      {children({
        ...(element !== null && { 'aria-describedby': id }),
        onPointerOver: ({ currentTarget, pointerType }) => {
          clearTimeout(timer.current);
          // A finger has no way to wait over it.
          if (pointerType === 'touch') setElement(currentTarget);
          else timer.current = setTimeout(() => setElement(currentTarget), HINT_AFTER_MS);
        },
        onPointerLeave: close,
        onFocus: ({ currentTarget, target }) => {
          if ((target as HTMLElement).matches(':focus-visible')) setElement(currentTarget);
        },
        onBlur: close,
        onKeyDown: ({ key }) => key === 'Escape' && close(),
      })}
      {element !== null && (
        <Suspense fallback={<VisuallyHidden id={id}>{label}</VisuallyHidden>}>
          <LazyTooltip opened target={element} label={label} id={id} multiline maw={320} role="tooltip" />
        </Suspense>
      )}
    </>
  );
}
