import { Group, Pagination, Skeleton, Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useSearchParams } from 'react-router';
import { request } from '../api/request.ts';
import type { AuditEntry } from '../api/types.ts';
import { PageHeading, Problem } from '../components/page.tsx';
import { Timestamp } from '../components/state.tsx';
import { Table, TableScroll } from '../components/table.tsx';
import { useAccount } from '../session/session.ts';
import { describeAction, describeActor, formatDetails } from '../wording/audit.ts';

const PATH = '/api/v3/accounts/{account_id}/audit';
const PAGE_SIZE = 25;

/** Page "Account Settings, Audit log": who changed what and when (docs/contract.md#audit-log). */
export function Component() {
  const account = useAccount();
  const [parameters, setParameters] = useSearchParams();
  const requestedPage = Number(parameters.get('page'));
  const page = Number.isSafeInteger(requestedPage) && requestedPage >= 1 ? requestedPage : 1;
  const query = { limit: PAGE_SIZE, offset: (page - 1) * PAGE_SIZE };
  const audit = useQuery({
    queryKey: ['accounts', account.id, 'audit', query],
    queryFn: ({ signal }) => request('get', PATH, { path: { account_id: account.id }, query, signal }),
    placeholderData: keepPreviousData,
  });
  const pageCount = Math.ceil((audit.data?.extra.pagination.total_count ?? 0) / PAGE_SIZE);
  return (
    <>
      <PageHeading
        title="Audit log"
        subtitle={`Changes to ${account.name}, sign-ins and sign-outs of the last year.`}
      />
      <Stack gap="md">
        {audit.isError && audit.data === undefined && (
          <Problem
            title="The audit log could not be loaded"
            error={audit.error}
            onRetry={() => void audit.refetch()}
            isRetrying={audit.isFetching}
          />
        )}
        {audit.isPending && <Skeleton height={320} role="status" aria-label="Loading" />}
        {audit.data?.data.length === 0 && <Text size="sm">No entries.</Text>}
        {audit.data !== undefined && audit.data.data.length > 0 && <Entries entries={audit.data.data} />}
        {pageCount > 1 && (
          <Group justify="center">
            <Pagination
              total={pageCount}
              value={Math.min(page, pageCount)}
              onChange={(selectedPage) =>
                setParameters(selectedPage === 1 ? {} : { page: String(selectedPage) })
              }
              getControlProps={(control) => ({ 'aria-label': `${control} page` })}
            />
          </Group>
        )}
      </Stack>
    </>
  );
}

function Entries({ entries }: { entries: readonly AuditEntry[] }) {
  return (
    <TableScroll minWidth={640}>
      <Table aria-label="Changes">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>What</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td>
                <Timestamp at={entry.created_at} />
              </td>
              <td style={{ overflowWrap: 'anywhere' }}>{describeActor(entry.actor)}</td>
              <td style={{ overflowWrap: 'anywhere' }}>
                {describeAction(entry)}
                <Text span size="xs" c="dimmed" display="block">
                  {formatDetails(entry.details)}
                </Text>
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </TableScroll>
  );
}
