import '@mantine/notifications/styles.layer.css';
import { Modal as LibraryModal, type ModalProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

export { Tooltip } from '@mantine/core';
export { Notifications } from '@mantine/notifications';

export function Modal({ opened, ...modal }: ModalProps) {
  return <LibraryModal {...modal} opened={useDelayedOpen(opened)} />;
}

/** Returns false on the first render even if `isOpen`: the opening is then animated, and closing restores the focus. */
export function useDelayedOpen(isOpen: boolean): boolean {
  const [opened, setOpened] = useState(false);
  useEffect(() => setOpened(isOpen), [isOpen]);
  return opened;
}

/** Focuses and opens a menu that replaces its button, which had the focus. */
export function useOpenOnMount(open: () => void) {
  const target = useRef<HTMLButtonElement>(null);
  const onOpen = useRef(open);
  useEffect(() => {
    target.current?.focus({ preventScroll: true });
    onOpen.current();
  }, []);
  return target;
}
