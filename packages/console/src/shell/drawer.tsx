import { Drawer } from '@mantine/core';
import type { ReactNode } from 'react';
import { useDelayedOpen } from '../components/overlays.tsx';

interface NavigationDrawerProps {
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** The navigation on narrow screens. */
export default function NavigationDrawer({ isOpen, onClose, children }: NavigationDrawerProps) {
  return (
    <Drawer
      opened={useDelayedOpen(isOpen)}
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
