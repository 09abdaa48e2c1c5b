import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { serviceStateQuery } from '../api/service-state.ts';

/** Shows problems that only an operator can solve: a record that takes no writes, and items that were set aside. */
export function ServiceNotice({ accountId }: { accountId: number }) {
  const { data } = useQuery(serviceStateQuery(accountId));
  if (data === undefined) return null;
  const [newest] = data.set_aside;
  return (
    <>
      {!data.record_writable && (
        <Alert color="red" mb="md" title="Nothing can be recorded at the moment">
          Reports are rejected with 503, and deliveries wait. Lists are readable. Ask the operator of this
          service.
        </Alert>
      )}
      {newest !== undefined && (
        <Alert color="yellow" mb="md" title={setAsideTitle(data.set_aside_count)}>
          The newest: {newest.kind} {newest.id}, {newest.reason}. Everything else is delivered. An operator
          can release or remove them.
        </Alert>
      )}
    </>
  );
}

function setAsideTitle(count: number): string {
  return count === 1 ? '1 item could not be processed' : `${count} items could not be processed`;
}
