import { Anchor, Group } from '@mantine/core';
import { Link } from 'react-router';
import { webhookPath, webhooksPath } from '../paths.ts';

interface WayToProps {
  accountId: number;
  webhookId: string;
  /** Undefined until it is known. */
  name: string | undefined;
}

/** From the list to the webhook that a page is about. */
export function WayTo({ accountId, webhookId, name = 'Webhook' }: WayToProps) {
  return (
    <Group gap={6} component="nav" aria-label="Where this page belongs">
      <Anchor component={Link} to={webhooksPath(accountId)} size="sm">
        Webhooks
      </Anchor>
      <span aria-hidden>/</span>
      <Anchor
        component={Link}
        to={webhookPath(accountId, webhookId)}
        size="sm"
        style={{ overflowWrap: 'anywhere', minWidth: 0 }}
      >
        {name}
      </Anchor>
    </Group>
  );
}
