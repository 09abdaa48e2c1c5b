import { Switch, Text } from '@mantine/core';
import { type ComponentProps, useState } from 'react';

/** An option that few webhooks use, so it is collapsed unless it is on when the page opens. */
export function SignatureKeyField(props: ComponentProps<typeof Switch>) {
  const [isOpen, setOpen] = useState(props.checked ?? false);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <Text component="summary" size="sm" fw={500} mb="xs" style={{ cursor: 'pointer' }}>
        Signature by a key pair
      </Text>
      <Switch
        label="Sign with Ed25519, too"
        description="Your endpoint can verify deliveries with a public key instead of the secret. Switching it off deletes the key pair."
        {...props}
      />
    </details>
  );
}
