// SQL by hand: counts a bounded number of runs by what subscriptions select by.
import {
  EVENT_TYPES,
  type EventSelection,
  type EventVolume,
  eventMatches,
  FILTER_LIMITS,
  FILTER_RUN_STATUSES,
  filterSets,
  IdSet,
  integerIdFromText,
  isStoredRunStatus,
  lowestRateLimit,
  SUBSCRIPTION_LIMITS,
  unmatchableFilters,
} from '@runhook/contract';
import { column, type Queryable, queryRows, type RowOf } from '@runhook/database';
import type { Clock } from '@runhook/runtime';
import { type AccountEndpoint, READ_WEBHOOKS } from '../http/endpoint.ts';
import { InvalidRequestError } from '../http/errors.ts';
import { createReader, QueryReader, someOf } from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { microsOf, timestampOf } from './delivery.ts';
import { reportedTypes, selectableEvent } from './run-events.ts';

export const PREVIEW_DAYS = 7;
/** Maximum number of runs of one call; at three events each, and some 200 ms for the statements. */
export const PREVIEW_RUNS_MAX = 50_000;
/** Time after which no further day is counted, on a slow disk. */
const PREVIEW_MS = 2_000;
const DAY_MS = 86_400_000;

/** Number of events that a draft of a webhook would have matched; times are microseconds since the epoch, as digits. */
export interface PreviewView {
  matched_count: number;
  total_count: number;
  /** Creation of the oldest run that is counted, or the start of the seven days. */
  since: string;
  until: string;
  /** False if the count stopped at a limit, so that `since` is later than seven days ago. */
  is_complete: boolean;
  /**
   * Requests per second below which a rate limit would let so many of these events wait that the account reaches its
   * limit of waiting deliveries; if they went on like this.
   */
  lowest_rate_limit: number;
}

export interface PreviewOptions {
  untilMs: number;
  /** Deliveries of an account that may wait. */
  pendingMax: number;
  runsMax?: number;
}

export interface PreviewDependencies {
  reads: ReplicaReads;
  clock: Clock;
  /** Deliveries of an account that may wait. */
  pendingMax: number;
}

/** Counts the events of the last days that match event types, jobs and filters (docs/contract.md#filters). */
export function previewEndpoint({ reads, clock, pendingMax }: PreviewDependencies): AccountEndpoint {
  return {
    method: 'GET',
    path: '/api/v3/accounts/:account_id/webhooks/preview',
    access: READ_WEBHOOKS,
    isSlowRead: true,
    async handle(request) {
      const selection = readSelection(new QueryReader(request.query));
      const database = reads.databaseFor(request);
      const options = { untilMs: clock.nowMs(), pendingMax };
      return { code: 200, data: await countMatches(database, request.account.id, selection, options) };
    },
  };
}

function readSelection(reader: QueryReader): EventSelection {
  const eventTypes = [...(reader.optional('event_types', someOf(EVENT_TYPES)) ?? EVENT_TYPES)];
  const jobIds = reader.filter('job_ids', ids(SUBSCRIPTION_LIMITS.jobIdsMax)) ?? [];
  const statuses = reader.filter('run_statuses', someOf(FILTER_RUN_STATUSES.map(String))) ?? [];
  const environmentIds = reader.filter('environment_ids', ids(FILTER_LIMITS.environmentIdsMax)) ?? [];
  const projectIds = reader.filter('project_ids', ids(FILTER_LIMITS.projectIdsMax)) ?? [];
  reader.check();
  const filters = {
    run_statuses: [...statuses].map(Number),
    environment_ids: environmentIds,
    project_ids: projectIds,
  };
  const problem = unmatchableFilters(eventTypes, filters);
  if (problem !== null)
    throw new InvalidRequestError([{ field: 'run_statuses', message: `run_statuses ${problem}` }]);
  return { active: true, eventTypes, jobIds: new IdSet(jobIds), filters: filterSets(filters) };
}

/** Reads ids separated by commas. */
function ids(max: number) {
  return createReader((text) => {
    const values = text.split(',').map(integerIdFromText);
    return values.length <= max && !values.includes(null) ? (values as number[]) : null;
  }, `must be up to ${max} ids (digits), separated by commas`);
}

const GROUP_COLUMNS = {
  job_id: column.digits,
  environment_id: column.digits,
  project_id: column.digits,
  status: isStoredRunStatus,
  has_started: column.flag,
  start_reported: column.flag,
  finished_at: column.orNull(column.digits),
  errored_at: column.orNull(column.digits),
  artifacts_ingested_at: column.orNull(column.digits),
  run_count: column.integer,
  oldest: column.digits,
};
type Group = RowOf<typeof GROUP_COLUMNS>;

const isPresent = (time: string) => `CASE WHEN ${time} IS NOT NULL THEN '0' END AS ${time}`;

const SELECT_GROUPS = `
  SELECT job_id, environment_id, project_id, status, started_at IS NOT NULL AS has_started, start_reported,
    ${['finished_at', 'errored_at', 'artifacts_ingested_at'].map(isPresent).join(', ')},
    count(*)::int AS run_count, ${microsOf('min(created_at)')} AS oldest
  FROM (
    SELECT * FROM runs
    WHERE account_id = $1 AND created_at >= ${timestampOf('$2')} AND created_at < ${timestampOf('$3')}
    ORDER BY created_at DESC LIMIT $4) newest
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9`;

/**
 * Counts the events of the runs that were created in the days before `untilMs`, newest first: one day in a statement, so
 * that a disk that is slow delays the call by one day at most.
 */
export async function countMatches(
  database: Queryable,
  accountId: number,
  selection: EventSelection,
  { untilMs, pendingMax, runsMax = PREVIEW_RUNS_MAX }: PreviewOptions,
): Promise<PreviewView> {
  const startedAtMs = performance.now();
  const view = { matched_count: 0, total_count: 0, until: microsOfMs(untilMs) };
  const days: EventVolume[] = [];
  let runsLeft = runsMax;
  const viewSince = (since: string, isComplete: boolean): PreviewView => ({
    ...view,
    since,
    is_complete: isComplete,
    lowest_rate_limit: lowestRateLimit(days, pendingMax),
  });
  for (let day = 1; ; day += 1) {
    const sinceMs = untilMs - day * DAY_MS;
    const bounds = [microsOfMs(sinceMs), microsOfMs(sinceMs + DAY_MS)];
    const groups = await queryRows(database, GROUP_COLUMNS, SELECT_GROUPS, [accountId, ...bounds, runsLeft]);
    const volume = { count: 0, seconds: DAY_MS / 1_000 };
    days.push(volume);
    for (const group of groups) {
      runsLeft -= group.run_count;
      const { matched, total } = countGroup(group, selection);
      volume.count += matched;
      view.matched_count += matched;
      view.total_count += total;
    }
    if (runsLeft <= 0) {
      const since = oldestOf(groups);
      volume.seconds = (sinceMs + DAY_MS) / 1_000 - Number(since) / 1_000_000;
      return viewSince(since, false);
    }
    const isComplete = day === PREVIEW_DAYS;
    if (isComplete || performance.now() - startedAtMs > PREVIEW_MS)
      return viewSince(microsOfMs(sinceMs), isComplete);
  }
}

function countGroup(run: Group, selection: EventSelection): { matched: number; total: number } {
  const types = reportedTypes(run);
  const matching = types.filter((type) => eventMatches(selection, selectableEvent(type, run)).matches);
  return { matched: matching.length * run.run_count, total: types.length * run.run_count };
}

function oldestOf(groups: readonly Group[]): string {
  return String(
    groups.reduce((least, { oldest }) => Math.min(least, Number(oldest)), Number.POSITIVE_INFINITY),
  );
}

function microsOfMs(timeMs: number): string {
  return String(BigInt(Math.floor(timeMs)) * 1_000n);
}
