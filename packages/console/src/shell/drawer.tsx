import { Drawer } from '@mantine/core';
import { type ReactNode, useEffect, useState } from 'react';

interface NavigationDrawerProps {
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** The navigation where there is no room for it beside the page. */
export default function NavigationDrawer({ isOpen, onClose, children }: NavigationDrawerProps) {
  const [opened, setOpened] = useState(false);
  // From closed to open, as whoever looks sees it come and the focus is kept for the way back.
  useEffect(() => setOpened(isOpen), [isOpen]);
  return (
    <Drawer
      opened={opened}
      onClose={onClose}
      title="Navigation"
      size={280}
      hiddenFrom="sm"
      closeButtonProps={{ 'aria-label': 'Close the navigation' }}
    >
      {children}
    </Drawer>
  );
}
