import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { serviceStateQuery } from '../api/service-state.ts';

/** Shows problems that only an operator can solve: a database that is not writable, and items that were set aside. */
export function ServiceNotice({ accountId }: { accountId: number }) {
  const { data } = useQuery(serviceStateQuery(accountId));
  if (data === undefined) return null;
  const [newest] = data.quarantined;
  return (
    <>
      {!data.record_writable && (
        <Alert color="red" mb="md" title="Runhook cannot store data at the moment">
          Run reports are rejected with 503, and deliveries are delayed. You can still read all pages. Contact
          the operator of this service.
        </Alert>
      )}
      {newest !== undefined && (
        <Alert color="yellow" mb="md" title={setAsideTitle(data.quarantined_count)}>
          Latest: {newest.kind} {newest.id}, {newest.reason}. All other items are delivered. Ask the operator
          of this service to release or remove these.
        </Alert>
      )}
    </>
  );
}

function setAsideTitle(count: number): string {
  return count === 1 ? '1 item could not be processed' : `${count} items could not be processed`;
}
