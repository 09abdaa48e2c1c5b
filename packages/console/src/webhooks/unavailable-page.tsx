import { Alert } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import { PageHeading } from '../components/page.tsx';
import { useAccount } from '../session/session.ts';
import { EmptyList } from './empty-list.tsx';

/** Instead of every page about webhooks where the plan or the deployment has none: the API refuses even to look. */
export function UnavailablePage({ reason }: { reason: string }) {
  const account = useAccount();
  return (
    <>
      <PageHeading title="Webhooks" />
      <Alert
        role="note"
        color="gray"
        icon={<IconLock aria-hidden />}
        title={`${account.name} has no webhooks`}
        mb="md"
      >
        {reason}
      </Alert>
      <EmptyList accountId={account.id} refusal={reason} />
    </>
  );
}
