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

// Dialogs, menus and tooltips are a third of the library. They are loaded on the first pointer movement or key press, which
// precedes any opening, and rendered on demand.
const loadOverlays = () => import('./overlays.tsx');
const LazyModal = lazy(async () => ({ default: (await loadOverlays()).Modal }));
const LazyTooltip = lazy(async () => ({ default: (await loadOverlays()).Tooltip }));
const LazyNotifications = lazy(async () => ({ default: (await loadOverlays()).Notifications }));

const preloaders = new Set<() => Promise<unknown>>([loadOverlays]);
const ACTIVITY_EVENTS = ['pointermove', 'pointerdown', 'keydown'] as const;

/**
 * Container of toasts. It exists before the first toast, so that screen readers announce it, and starts the loading of the
 * chunks.
 */
export function Toasts() {
  const { notifications } = useNotifications();
  const [isUsed, setUsed] = useState(false);
  const isNeeded = useHasBeenTrue(isUsed || notifications.length > 0);
  useEffect(() => {
    const listeners = new AbortController();
    const preload = () => {
      listeners.abort();
      setUsed(true);
      // A chunk that fails to load is requested again when it is needed.
      for (const load of preloaders) load().catch(() => {});
    };
    for (const eventName of ACTIVITY_EVENTS)
      document.addEventListener(eventName, preload, { signal: listeners.signal });
    return () => listeners.abort();
  }, []);
  if (!isNeeded) return null;
  return (
    <Suspense>
      <LazyNotifications position="bottom-right" aria-live="polite" />
    </Suspense>
  );
}

type ModalProps = Parameters<typeof LazyModal>[0];

/** A dialog of the library. Once opened, it stays mounted, so that its closing is animated. */
export function Dialog(props: ModalProps) {
  const hasBeenOpened = useHasBeenTrue(props.opened);
  if (!hasBeenOpened) return null;
  return (
    <Suspense>
      <LazyModal centered closeButtonProps={{ 'aria-label': 'Close' }} {...props} />
    </Suspense>
  );
}

export function useHasBeenTrue(value: boolean): boolean {
  const hasBeen = useRef(false);
  hasBeen.current ||= value;
  return hasBeen.current;
}

export interface TriggerProps {
  ref?: RefObject<HTMLButtonElement | null>;
  onClick?: () => void;
  'aria-haspopup'?: 'menu' | 'listbox';
  'aria-expanded'?: boolean;
}

export interface PopoverProps {
  /** Renders the button that opens the popup. */
  trigger: (props: TriggerProps) => ReactElement;
}

/** Returns a lazy component that is loaded together with the other popups. */
export function lazyOverlay<Props>(load: () => Promise<{ default: ComponentType<Props> }>) {
  preloaders.add(load);
  return lazy(load);
}

interface LazyPopoverProps extends PopoverProps {
  popup: 'menu' | 'listbox';
  /** The button with its popup, which replaces the button without one. */
  children: ReactNode;
}

/** A button that is replaced by its popup component on the first click. */
export function LazyPopover({ popup, trigger, children }: LazyPopoverProps) {
  const [isRequested, setRequested] = useState(false);
  const closedTrigger = trigger({
    'aria-haspopup': popup,
    'aria-expanded': false,
    onClick: () => setRequested(true),
  });
  return isRequested ? <Suspense fallback={closedTrigger}>{children}</Suspense> : closedTrigger;
}

const HINT_DELAY_MS = 150;

export interface HintTarget {
  'aria-describedby'?: string;
  /** Used instead of `onPointerEnter`, which React does not call for an element that appears under the pointer. */
  onPointerOver: (event: PointerEvent<HTMLElement>) => void;
  onPointerLeave: () => void;
  onFocus: (event: { currentTarget: HTMLElement; target: EventTarget }) => void;
  onBlur: () => void;
  onKeyDown: (event: { key: string }) => void;
}

/**
 * Shows a tooltip while an element has the pointer or the keyboard focus. It must not be the only source of necessary
 * information.
 */
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
          // The delay is for a pointer that only crosses the element. A touch does not, so the tooltip opens at once.
          if (pointerType === 'touch') setElement(currentTarget);
          else timer.current = setTimeout(() => setElement(currentTarget), HINT_DELAY_MS);
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
