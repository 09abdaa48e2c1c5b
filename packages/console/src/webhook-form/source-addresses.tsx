import { Input } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { serviceStateQuery } from '../api/service-state.ts';
import { CopyButton } from '../components/copy.tsx';

/** Addresses from which requests reach endpoints, for their firewalls. Nothing if the operator has not configured them. */
export function SourceAddresses({ accountId }: { accountId: number }) {
  const { data } = useQuery(serviceStateQuery(accountId));
  const addresses = data?.source_addresses?.join(', ');
  if (addresses === undefined) return null;
  return (
    <Input.Description data-testid="source-addresses" style={{ overflowWrap: 'anywhere' }}>
      Requests come from {addresses}.{' '}
      <CopyButton value={addresses} what="the source addresses" size="compact-xs" variant="subtle" />
    </Input.Description>
  );
}
