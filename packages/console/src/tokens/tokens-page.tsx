import { Group, Pagination, Skeleton, Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'react-router';
import { request } from '../api/request.ts';
import type { ServiceToken } from '../api/types.ts';
import { PageHeading, Problem } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { Table, TableScroll } from '../components/table.tsx';
import { useAccount } from '../session/session.ts';
import { tokenState } from '../wording/tokens.ts';

const PATH = '/api/v3/accounts/{account_id}/tokens';
const PAGE_SIZE = 25;

/** Page "Account Settings, Service tokens": expiry and last use of each token (docs/contract.md#identity). */
export function Component() {
  const account = useAccount();
  const [parameters, setParameters] = useSearchParams();
  const requestedPage = Number(parameters.get('page'));
  const page = Number.isSafeInteger(requestedPage) && requestedPage >= 1 ? requestedPage : 1;
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  const tokens = useQuery({
    queryKey: ['accounts', account.id, 'tokens', query],
    queryFn: ({ signal }) => request('get', PATH, { path: { account_id: account.id }, query, signal }),
    placeholderData: keepPreviousData,
  });
  const pageCount = Math.ceil((tokens.data?.extra.pagination.total_count ?? 0) / PAGE_SIZE);
  return (
    <>
      <PageHeading
        title="Service tokens"
        subtitle={`Tokens of ${account.name}. An operator of the installation creates and revokes them.`}
      />
      <Stack gap="md">
        {tokens.isError && tokens.data === undefined && (
          <Problem
            title="The service tokens could not be loaded"
            error={tokens.error}
            onRetry={() => void tokens.refetch()}
            isRetrying={tokens.isFetching}
          />
        )}
        {tokens.isPending && <Skeleton height={200} role="status" aria-label="Loading" />}
        {tokens.data?.data.length === 0 && <Text size="sm">No tokens.</Text>}
        {tokens.data !== undefined && tokens.data.data.length > 0 && <Tokens tokens={tokens.data.data} />}
        {pageCount > 1 && (
          <Group justify="center">
            <Pagination
              total={pageCount}
              value={Math.min(page, pageCount)}
              onChange={(selected) => setParameters(selected === 1 ? {} : { page: String(selected) })}
              getControlProps={(control) => ({ 'aria-label': `${control} page` })}
            />
          </Group>
        )}
      </Stack>
    </>
  );
}

function Tokens({ tokens }: { tokens: readonly ServiceToken[] }) {
  const nowMs = Date.now();
  return (
    <TableScroll minWidth={760}>
      <Table aria-label="Service tokens">
        <thead>
          <tr>
            <th>Name</th>
            <th>State</th>
            <th>Permission sets</th>
            <th>Last use</th>
            <th>Expires</th>
            <th>Created</th>
          </tr>
        </thead>
        <tbody>
          {tokens.map((token) => {
            const { tone, text } = tokenState(token, nowMs);
            return (
              <tr key={token.id}>
                <td style={{ overflowWrap: 'anywhere' }}>{token.name}</td>
                <td>
                  <StatusBadge tone={tone}>{text}</StatusBadge>
                </td>
                <td>{token.permission_sets.join(', ')}</td>
                <td>{token.last_used_at === null ? 'never' : <Timestamp at={token.last_used_at} />}</td>
                <td>{token.expires_at === null ? 'never' : <Timestamp at={token.expires_at} />}</td>
                <td>
                  <Timestamp at={token.created_at} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </Table>
    </TableScroll>
  );
}
