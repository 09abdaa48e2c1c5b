import { ActionIcon, Menu } from '@mantine/core';
import { IconDots, IconEye, IconPencil, IconTrash } from '@tabler/icons-react';
import { Link } from 'react-router';
import type { Subscription } from '../api/types.ts';
import { editWebhookPath, webhookPath } from '../paths.ts';

interface RowActionsProps {
  accountId: number;
  subscription: Subscription;
  mayWrite: boolean;
  onDelete: () => void;
}

/** What can be done with one webhook of the list. */
export function RowActions({ accountId, subscription: { id, name }, mayWrite, onDelete }: RowActionsProps) {
  return (
    <Menu position="bottom-end" width={180}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`More about ${name}`}>
          <IconDots size={18} aria-hidden />
        </ActionIcon>
      </Menu.Target>
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
