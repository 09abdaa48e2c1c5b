import { Alert } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { useAccount } from '../session/session-context.ts';
import { writeRefusal } from '../words/webhooks.ts';

/** On top of a page with controls that the caller may not use: the reason, once, in words. */
export function WriteNotice() {
  const reason = writeRefusal(useAccount());
  if (reason === null) return null;
  return (
    <Alert role="note" color="gray" icon={<IconLock aria-hidden />} title="You can look, not change" mb="md">
      {reason} An administrator of the account can change that.
    </Alert>
  );
}
