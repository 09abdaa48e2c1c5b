import { Button, type ButtonProps } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { GuardedButton } from './guarded-button.tsx';

/** A link that looks like a button, and becomes one with a reason when it must not be followed. */
export function GuardedLinkButton({
  to,
  reason,
  ...button
}: ButtonProps & { to: string; reason: string | null; children: ReactNode }) {
  if (reason !== null) return <GuardedButton {...button} reason={reason} />;
  return <Button {...button} component={Link} to={to} />;
}
