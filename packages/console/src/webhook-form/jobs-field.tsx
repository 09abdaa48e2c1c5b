import { Group, MultiSelect, type MultiSelectProps, Text } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { describeProblem } from '../api/api-error.ts';
import { JOBS_SHOWN_MAX, jobSearchQuery, jobsByIdQuery } from '../api/subscriptions.ts';
import type { Job } from '../api/types.ts';

const DEBOUNCE_MS = 200;

/** Also accepts the properties that the form passes to a field. */
interface JobsFieldProps extends Pick<MultiSelectProps, 'error' | 'onFocus' | 'onBlur'> {
  accountId: number;
  value: string[];
  onChange: (ids: string[]) => void;
}

/** Selects jobs by name or id, with a search on the server, because an account may have thousands. */
export function JobsField({ accountId, value, onChange, ...inputProps }: JobsFieldProps) {
  const [search, setSearch] = useState('');
  const [debounced] = useDebouncedValue(search.trim(), DEBOUNCE_MS);
  const [initialIds] = useState(value);
  const chosen = useQuery(jobsByIdQuery(accountId, initialIds));
  const results = useQuery(jobSearchQuery(accountId, debounced));
  const jobsById = useJobCache([...(chosen.data ?? []), ...(results.data?.data ?? [])]);

  const ids = [...new Set([...value, ...(results.data?.data ?? []).map(({ id }) => String(id))])];
  const foundIds = new Set((results.data?.data ?? []).map(({ id }) => String(id)));
  const isLoaded = debounced === search.trim() && !results.isPlaceholderData;
  const totalCount = results.data?.extra.pagination.total_count ?? 0;

  const selectJobs = (next: string[]) => {
    onChange(next);
    setSearch('');
  };
  const selectFirst = useSelectFirstOnceLoaded({
    isLoaded,
    search,
    onLoaded: () => {
      const first = [...foundIds].find((id) => !value.includes(id));
      if (first !== undefined) selectJobs([...value, first]);
    },
  });

  return (
    <MultiSelect
      {...inputProps}
      label="Jobs"
      description={
        <>
          Leave empty for all jobs, including future ones.
          {totalCount > JOBS_SHOWN_MAX &&
            ` The first ${JOBS_SHOWN_MAX} of ${totalCount.toLocaleString()} are listed: type to find others.`}
        </>
      }
      placeholder={value.length === 0 ? 'All jobs' : ''}
      data={ids.map((id) => ({ value: id, label: jobsById.get(id)?.name ?? `Job ${id}` }))}
      value={value}
      onChange={selectJobs}
      // Enter would submit the form. With a search text it selects the first result instead; otherwise it does nothing.
      wrapperProps={{
        onKeyDown: (event: KeyboardEvent) => {
          if (event.key !== 'Enter') return;
          if (!event.defaultPrevented && search.trim() !== '') selectFirst();
          event.preventDefault();
        },
      }}
      selectFirstOptionOnChange
      searchable
      searchValue={search}
      onSearchChange={setSearch}
      // The server filters. Until it has responded to the last key, the previous results are filtered here.
      filter={({ options }) =>
        options.filter(
          (option) =>
            'value' in option &&
            foundIds.has(String(option.value)) &&
            (isLoaded || matches(option.label, String(option.value), search)),
        )
      }
      renderOption={({ option }) => <JobOption job={jobsById.get(option.value)} label={option.label} />}
      nothingFoundMessage={describeNoResults(results.error, results.isFetching, search)}
      clearable={value.length > 0}
      maxDropdownHeight={280}
      styles={{ pillsList: { maxHeight: 180, overflowY: 'auto' } }}
    />
  );
}

/** Returns a function that selects the first result as soon as the pending search has responded, for users who type quickly. */
function useSelectFirstOnceLoaded({
  isLoaded,
  search,
  onLoaded,
}: {
  isLoaded: boolean;
  search: string;
  onLoaded: () => void;
}): () => void {
  const [pendingSearch, setPendingSearch] = useState<string | null>(null);
  useEffect(() => {
    if (pendingSearch === null) return;
    if (pendingSearch === search && !isLoaded) return;
    setPendingSearch(null);
    if (pendingSearch === search) onLoaded();
  });
  return () => setPendingSearch(search);
}

/** Matches like the server: the name contains the text, or the id begins with it. */
function matches(name: string, id: string, search: string): boolean {
  const text = search.trim().toLowerCase();
  return name.toLowerCase().includes(text) || id.startsWith(text);
}

/** Caches jobs: a selected job must keep its name when the next search does not return it. */
function useJobCache(jobs: Job[]): ReadonlyMap<string, Job> {
  const jobsById = useRef(new Map<string, Job>());
  for (const job of jobs) jobsById.current.set(String(job.id), job);
  return jobsById.current;
}

function JobOption({ job, label }: { job: Job | undefined; label: string }) {
  return (
    <Group gap={8} wrap="nowrap" justify="space-between" flex={1} miw={0}>
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {label}
      </Text>
      {job !== undefined && (
        <Text size="xs" ta="end" opacity={0.85}>
          {job.project_name} · {job.environment_name} · {job.id}
        </Text>
      )}
    </Group>
  );
}

function describeNoResults(error: Error | null, isFetching: boolean, search: string): string {
  if (isFetching) return 'Searching…';
  if (error !== null) return `The jobs could not be loaded. ${describeProblem(error)}`;
  return search.trim() === '' ? 'This account has no jobs yet.' : `No job name contains “${search.trim()}”.`;
}
