import { Button, Group, NativeSelect, Pagination, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { STORED_RUN_STATUSES } from '@runhook/contract/run-statuses';
import { IconSearch } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';
import { runQuery, runsQuery } from '../api/activity.ts';
import { useChanges } from '../api/changes.ts';
import type { Run } from '../api/types.ts';
import { PageHeading, Problem, useIsNarrow } from '../components/page.tsx';
import { useRequestedAddress } from '../components/requested-address.ts';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { Table } from '../components/table.tsx';
import { useAddressText, useDebouncedInput } from '../components/typed-text.ts';
import { UtcRange } from '../events/utc-range.tsx';
import { runPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import classes from '../webhook/log/delivery-rows.module.css';
import { formatRunDuration, RUN_STATUS_LABELS, runLabel, runTone } from '../wording/runs.ts';
import { hasRunFilters, type RunsAddress, readRunsAddress, writeRunsAddress } from './runs-address.ts';

const PAGE_SIZE = 25;
const TABLE_MIN_EM = 62;

/** Page "Activity, Runs": the runs that job runners reported, with a search. */
export function Component() {
  const account = useAccount();
  const [parameters, setParameters] = useSearchParams();
  const { address, requested } = useRequestedAddress(parameters, readRunsAddress);
  useChanges(account.id, null);
  // A new key remounts the search, which cancels its delayed change.
  const [clearings, setClearings] = useState(0);
  const runs = useQuery(
    runsQuery(account.id, {
      search: address.search,
      status: address.status,
      since: address.from,
      until: address.to,
      limit: PAGE_SIZE,
      offset: (address.page - 1) * PAGE_SIZE,
    }),
  );
  const go = (part: Partial<RunsAddress>) => {
    requested.current = { ...requested.current, page: 1, ...part };
    setParameters(writeRunsAddress(requested.current), {
      replace: part.page === undefined,
      preventScrollReset: true,
    });
  };
  const total = runs.data?.extra.pagination.total_count ?? 0;
  const pageCount = Math.ceil(total / PAGE_SIZE);
  return (
    <>
      <PageHeading title="Runs" subtitle="Find a run to see which webhooks were notified." />
      <Stack gap="md">
        <Group gap="sm" align="flex-end" role="search" aria-label="Find runs">
          <RunSearch key={clearings} search={address.search} onSearch={(search) => go({ search })} />
          <NativeSelect
            label="Status"
            value={address.status}
            onChange={(event) => go({ status: event.currentTarget.value as RunsAddress['status'] })}
            data={[
              { value: '', label: 'Any' },
              ...STORED_RUN_STATUSES.map((status) => ({ value: status, label: RUN_STATUS_LABELS[status] })),
            ]}
          />
          <UtcRange what="Started" from={address.from} to={address.to} onChange={go} />
          {hasRunFilters(address) && (
            <Button
              variant="subtle"
              onClick={() => {
                setClearings(clearings + 1);
                go({ search: '', status: '', from: '', to: '' });
              }}
            >
              Clear filters
            </Button>
          )}
        </Group>
        {runs.isError && runs.data === undefined && (
          <Problem
            title="The runs could not be loaded"
            error={runs.error}
            onRetry={() => void runs.refetch()}
            isRetrying={runs.isFetching}
          />
        )}
        {runs.isPending && <Skeleton height={320} role="status" aria-label="Loading" />}
        {runs.data !== undefined && (
          <div style={{ opacity: runs.isPlaceholderData ? 0.5 : 1 }} aria-busy={runs.isPlaceholderData}>
            <Runs runs={runs.data.data} hasFilters={hasRunFilters(address)} />
          </div>
        )}
        {pageCount > 1 && (
          <Group justify="center">
            <Pagination
              total={pageCount}
              value={Math.min(address.page, pageCount)}
              onChange={(page) => go({ page })}
              getControlProps={(control) => ({ 'aria-label': `${control} page` })}
            />
          </Group>
        )}
      </Stack>
    </>
  );
}

/** Filters the list while the user types. Enter opens the run with that id, if it exists. */
function RunSearch({ search, onSearch }: { search: string; onSearch: (search: string) => void }) {
  const account = useAccount();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { text, setText, field } = useAddressText(search);
  const searchDebounced = useDebouncedInput(onSearch);

  async function open(event: FormEvent) {
    event.preventDefault();
    // Enter reports the text immediately, so the delayed change is cancelled.
    searchDebounced.cancel();
    const runId = text.trim();
    if (!/^\d{1,15}$/.test(runId)) return onSearch(runId);
    const run = await client.fetchQuery(runQuery(account.id, Number(runId))).catch(() => null);
    if (run === null) onSearch(runId);
    else void navigate(runPath(account.id, run.id));
  }

  return (
    <form onSubmit={(event) => void open(event)}>
      <TextInput
        ref={field}
        type="search"
        label="Run id or job"
        placeholder="2482, Nightly"
        leftSection={<IconSearch size={16} aria-hidden />}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          searchDebounced(event.currentTarget.value.trim());
        }}
      />
    </form>
  );
}

function Runs({ runs, hasFilters }: { runs: readonly Run[]; hasFilters: boolean }) {
  const isNarrow = useIsNarrow(TABLE_MIN_EM);
  if (runs.length === 0)
    return (
      <Text size="sm">
        {hasFilters
          ? 'No run matches. Change the search, or clear the filters.'
          : 'No runs yet. They appear here as soon as a job runner reports one.'}
      </Text>
    );
  return isNarrow ? <RunCards runs={runs} /> : <RunTable runs={runs} />;
}

function RunTable({ runs }: { runs: readonly Run[] }) {
  return (
    <Table className={classes.table ?? ''} verticalSpacing={6} aria-label="Runs, newest first">
      <thead>
        <tr>
          <th>Run</th>
          <th>Status</th>
          <th>Job</th>
          <th>Environment</th>
          <th>Started</th>
          <th className={classes.number ?? ''}>Took</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.id} className={classes.row ?? ''}>
            <td>
              <RunLink run={run} />
            </td>
            <td>
              <RunState run={run} />
            </td>
            <td>
              <div className={classes.job} title={run.job_name}>
                {run.job_name}
              </div>
            </td>
            <td>
              <div className={classes.job} title={run.environment_name}>
                {run.environment_name}
              </div>
            </td>
            <td>
              <RunStarted run={run} />
            </td>
            <td className={classes.number ?? ''}>{formatRunDuration(run) ?? '–'}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function RunCards({ runs }: { runs: readonly Run[] }) {
  return (
    <ul className={classes.cards} aria-label="Runs, newest first">
      {runs.map((run) => (
        <li key={run.id} className={classes.card}>
          <div className={classes.line}>
            <RunLink run={run} />
            <RunState run={run} />
          </div>
          <div className={classes.line}>
            <span>{run.job_name}</span>
            <RunStarted run={run} />
          </div>
          <div className={`${classes.line} ${classes.dimmed}`}>
            <span>{run.environment_name}</span>
            <span>{formatRunDuration(run) ?? ''}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}

function RunState({ run }: { run: Run }) {
  return <StatusBadge tone={runTone(run)}>{runLabel(run)}</StatusBadge>;
}

function RunStarted({ run: { started_at } }: { run: Run }) {
  return started_at === null ? 'not yet' : <Timestamp at={started_at} format="exact" />;
}

function RunLink({ run }: { run: Run }) {
  return (
    <Link to={runPath(run.account_id, run.id)} className={classes.link ?? ''}>
      Run {run.id}
    </Link>
  );
}
