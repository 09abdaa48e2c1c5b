import { Button, type ButtonProps, Tooltip, VisuallyHidden } from '@mantine/core';
import { type ComponentProps, useId } from 'react';

type GuardedButtonProps = ButtonProps &
  Pick<ComponentProps<'button'>, 'onClick' | 'type'> & {
    /** Why it cannot be used now, in words; null when it can. */
    reason: string | null;
  };

/** A button that stays in the tab order when it cannot be used, and then says why on focus and hover. */
export function GuardedButton({ reason, onClick, ...button }: GuardedButtonProps) {
  const reasonId = useId();
  if (reason === null) return <Button {...button} onClick={onClick} />;
  return (
    <>
      <Tooltip label={reason} events={{ hover: true, focus: true, touch: true }} multiline maw={320}>
        <Button
          {...button}
          type="button"
          data-disabled
          aria-disabled
          aria-describedby={reasonId}
          onClick={(event) => event.preventDefault()}
        />
      </Tooltip>
      <VisuallyHidden id={reasonId}>{reason}</VisuallyHidden>
    </>
  );
}
