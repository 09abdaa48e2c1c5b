import '@mantine/notifications/styles.layer.css';
import { Modal as LibraryModal, type ModalProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

export { Tooltip } from '@mantine/core';
export { Notifications } from '@mantine/notifications';

export function Modal({ opened, ...modal }: ModalProps) {
  return <LibraryModal {...modal} opened={useOpenedAfterwards(opened)} />;
}

/** From closed to open even at first: so it is seen to come, and the focus goes back to where it was. */
export function useOpenedAfterwards(isOpen: boolean): boolean {
  const [opened, setOpened] = useState(false);
  useEffect(() => setOpened(isOpen), [isOpen]);
  return opened;
}

/** For a menu that takes the place of its button: it has the focus that the button had, and opens. */
export function useOpenedOnArrival(open: () => void) {
  const target = useRef<HTMLButtonElement>(null);
  const opening = useRef(open);
  useEffect(() => {
    target.current?.focus({ preventScroll: true });
    opening.current();
  }, []);
  return target;
}
