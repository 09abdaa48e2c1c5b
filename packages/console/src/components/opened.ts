import '@mantine/notifications/styles.layer.css';
import { useEffect, useRef } from 'react';

export { Modal, Tooltip } from '@mantine/core';
export { Notifications } from '@mantine/notifications';

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
