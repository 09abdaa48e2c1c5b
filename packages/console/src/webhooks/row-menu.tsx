import { Menu } from '@mantine/core';
import { IconCopy, IconEye, IconPencil, IconTrash } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import type { Subscription } from '../api/types.ts';
import type { PopoverProps } from '../components/lazy-popover.tsx';
import { useOpenOnMount } from '../components/overlays.tsx';
import { duplicateWebhookPath, editWebhookPath, webhookPath } from '../paths.ts';

export interface RowActionsProps {
  accountId: number;
  subscription: Subscription;
  mayWrite: boolean;
  onDelete: () => void;
}

export default function RowMenu({
  accountId,
  subscription: { id },
  mayWrite,
  onDelete,
  trigger,
}: RowActionsProps & PopoverProps) {
  const [opened, setOpened] = useState(false);
  const target = useOpenOnMount(() => setOpened(true));
  return (
    <Menu position="bottom-end" width={180} opened={opened} onChange={setOpened}>
      <Menu.Target>{trigger({ ref: target })}</Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          component={Link}
          to={webhookPath(accountId, id)}
          leftSection={<IconEye size={16} aria-hidden />}
        >
          Open
        </Menu.Item>
        {mayWrite && (
          <>
            <Menu.Item
              component={Link}
              to={editWebhookPath(accountId, id)}
              leftSection={<IconPencil size={16} aria-hidden />}
            >
              Edit
            </Menu.Item>
            <Menu.Item
              component={Link}
              to={duplicateWebhookPath(accountId, id)}
              leftSection={<IconCopy size={16} aria-hidden />}
            >
              Duplicate
            </Menu.Item>
            <Menu.Divider />
            <Menu.Item color="red" leftSection={<IconTrash size={16} aria-hidden />} onClick={onDelete}>
              Delete
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}
