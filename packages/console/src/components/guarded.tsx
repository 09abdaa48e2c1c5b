import { Alert, Button, type ButtonProps, VisuallyHidden } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { type ComponentProps, type ReactNode, useId } from 'react';
import { Link } from 'react-router';
import { useAccount } from '../session/session.ts';
import { writeDenialReason } from '../wording/webhooks.ts';
import { Hint } from './lazy-popover.tsx';

type GuardedButtonProps = ButtonProps &
  Pick<ComponentProps<'button'>, 'onClick' | 'type'> & {
    /** Reason why the button is disabled; null if it is enabled. */
    reason: string | null;
  };

/** A button that, if it is disabled, stays in the tab order and shows the reason on focus and hover. */
export function GuardedButton({ reason, onClick, ...button }: GuardedButtonProps) {
  const reasonId = useId();
  if (reason === null) return <Button {...button} onClick={onClick} />;
  return (
    <>
      <Hint label={reason}>
        {(target) => (
          <Button
            {...button}
            {...target}
            type="button"
            data-disabled
            aria-disabled
            aria-describedby={reasonId}
            onClick={(event) => event.preventDefault()}
          />
        )}
      </Hint>
      <VisuallyHidden id={reasonId}>{reason}</VisuallyHidden>
    </>
  );
}

/** A link that looks like a button. With a reason it is a disabled button instead. */
export function GuardedLinkButton({
  to,
  reason,
  ...button
}: ButtonProps & { to: string; reason: string | null; children: ReactNode }) {
  if (reason !== null) return <GuardedButton {...button} reason={reason} />;
  return <Button {...button} component={Link} to={to} />;
}

/** Notice at the top of a page with controls that the user may not use. It gives the reason once. */
export function WriteNotice() {
  const reason = writeDenialReason(useAccount());
  if (reason === null) return null;
  return (
    <Alert role="note" color="gray" icon={<IconLock aria-hidden />} title="You have read-only access" mb="md">
      {reason} An administrator of the account can change this.
    </Alert>
  );
}
