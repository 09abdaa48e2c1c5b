import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query';
import { isLive, pollUnlessLive } from './live.ts';
import { type Query, request } from './request.ts';
import { webhooksKey } from './subscriptions.ts';
import type { Histogram, Run } from './types.ts';

const RUNS = '/api/v2/accounts/{account_id}/runs';
const RUN = '/api/v2/accounts/{account_id}/runs/{run_id}';
const RUN_EVENTS = '/api/v3/accounts/{account_id}/webhooks/run/{run_id}/events';
const DELIVERIES = '/api/v3/accounts/{account_id}/webhooks/deliveries';
const HISTOGRAM = '/api/v3/accounts/{account_id}/webhooks/deliveries/histogram';

const POLL_MS = 5_000;
/** Poll interval of runs and open histograms while changes are received: a run can change when no webhook does. */
const RUNS_POLL_MS = 15_000;

export type RunsQuery = Query<'get', typeof RUNS>;
export type AccountLogQuery = Query<'get', typeof DELIVERIES>;
export type HistogramQuery = Query<'get', typeof HISTOGRAM>;

/** Prefix of the query keys of an account's runs, log and histogram. A change of any webhook invalidates them. */
export function activityKey(accountId: number) {
  return [...webhooksKey(accountId), 'activity'] as const;
}

/** Interval at which a run is read again. */
export const pollRuns = () => (isLive() ? RUNS_POLL_MS : POLL_MS);
const pollLog = pollUnlessLive(POLL_MS);

/** A page of the account's runs, newest first. */
export function runsQuery(accountId: number, query: RunsQuery) {
  return queryOptions({
    queryKey: [...activityKey(accountId), 'runs', query],
    queryFn: ({ signal }) => request('get', RUNS, { path: { account_id: accountId }, query, signal }),
    placeholderData: keepPreviousData,
    refetchInterval: pollRuns,
  });
}

export function runQuery(accountId: number, runId: number) {
  const path = { account_id: accountId, run_id: runId };
  return queryOptions({
    queryKey: [...activityKey(accountId), 'run', runId],
    queryFn: async ({ signal }): Promise<Run> => (await request('get', RUN, { path, signal })).data,
    refetchInterval: pollRuns,
  });
}

/** Returns the events of a run, including those that no webhook matched. */
export function runEventsQuery(accountId: number, runId: number) {
  const path = { account_id: accountId, run_id: runId };
  return queryOptions({
    queryKey: [...activityKey(accountId), 'run', runId, 'events'],
    queryFn: async ({ signal }) => (await request('get', RUN_EVENTS, { path, signal })).data,
    refetchInterval: pollRuns,
  });
}

/** Pages through the log of all webhooks, newest first. */
export function accountLogQuery(accountId: number, query: AccountLogQuery) {
  return infiniteQueryOptions({
    queryKey: [...activityKey(accountId), 'log', query],
    queryFn: ({ signal, pageParam }) =>
      request('get', DELIVERIES, {
        path: { account_id: accountId },
        query: { ...query, before: pageParam },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ extra }) => extra.pagination.next_before,
    placeholderData: keepPreviousData,
    refetchInterval: pollLog,
  });
}

/** Counts the deliveries of a time range in buckets. @param isOpen whether the range ends now, so that polling continues */
export function histogramQuery(accountId: number, query: HistogramQuery, isOpen: boolean) {
  return queryOptions({
    queryKey: [...activityKey(accountId), 'histogram', query],
    queryFn: async ({ signal }): Promise<Histogram> =>
      (await request('get', HISTOGRAM, { path: { account_id: accountId }, query, signal })).data,
    placeholderData: keepPreviousData,
    refetchInterval: isOpen ? pollRuns : false,
  });
}
