// Uses no Node.js API, so that the console can match events of a preview.
import { EVENT_TYPE_TABLE, type EventType, RUN_STATUS_CODES, type RunDetails } from './event-types.ts';
import { IdSet } from './id-set.ts';

/** Run statuses of payloads that a filter may name. */
export const FILTER_RUN_STATUSES = [
  RUN_STATUS_CODES.Running,
  RUN_STATUS_CODES.Success,
  RUN_STATUS_CODES.Errored,
] as const;

/**
 * The filters of a subscription as stored (docs/contract.md#filters): members are never empty, and a subscription
 * without any has null instead. An event matches if each member that is present includes the event's value.
 */
export interface EventFilters {
  /** Values of `data.runStatusCode`. */
  run_statuses?: number[];
  environment_ids?: number[];
  project_ids?: number[];
}

/** The filters in responses: ids and codes are digits. */
export type EventFiltersView = { [Name in keyof EventFilters]?: string[] };

export const FILTER_NAMES = [
  'run_statuses',
  'environment_ids',
  'project_ids',
] as const satisfies readonly (keyof EventFilters)[];

export const FILTER_LIMITS = { environmentIdsMax: 1_000, projectIdsMax: 1_000 } as const;

/** Renders stored filters for a response; null for a subscription without any. */
export function filtersView(filters: EventFilters | null): EventFiltersView | null {
  if (filters === null) return null;
  const view: EventFiltersView = {};
  for (const name of FILTER_NAMES) {
    const values = filters[name];
    if (values !== undefined && values.length > 0) view[name] = values.map(String);
  }
  return Object.keys(view).length === 0 ? null : view;
}

/** Returns why no event can match these types and filters, as the end of a sentence about `filters`; null if one can. */
export function unmatchableFilters(
  eventTypes: readonly EventType[],
  filters: EventFilters | null | undefined,
): string | null {
  const statuses = filters?.run_statuses ?? [];
  if (statuses.length === 0) return null;
  const possible = new Set<number>(
    eventTypes.flatMap((type) => EVENT_TYPE_TABLE[type].statuses.map((status) => RUN_STATUS_CODES[status])),
  );
  if (statuses.some((status) => possible.has(status))) return null;
  return (
    `match no event: the runs of ${eventTypes.join(' and ')} have the status ` +
    `${FILTER_RUN_STATUSES.filter((status) => possible.has(status)).join(' or ')}, not ${statuses.join(' or ')}`
  );
}

/** Filters prepared for matching. Created once when a subscription is loaded, and used for each event. */
export interface FilterSets {
  /** Null for any. At most three values, for which an array is faster than a set. */
  runStatuses: readonly number[] | null;
  environmentIds: IdSet | null;
  projectIds: IdSet | null;
  /** Memory of the ids. */
  bytes: number;
}

/** Returns null for a subscription without filters, which {@link eventMatches} then skips by one comparison. */
export function filterSets(filters: EventFilters | null): FilterSets | null {
  if (filters === null) return null;
  const runStatuses = filters.run_statuses?.length ? filters.run_statuses : null;
  const environmentIds = filters.environment_ids?.length ? new IdSet(filters.environment_ids) : null;
  const projectIds = filters.project_ids?.length ? new IdSet(filters.project_ids) : null;
  if (runStatuses === null && environmentIds === null && projectIds === null) return null;
  const bytes = (environmentIds?.bytes ?? 0) + (projectIds?.bytes ?? 0);
  return { runStatuses, environmentIds, projectIds, bytes };
}

/** The fields of a subscription that decide which events it hears about. */
export interface EventSelection {
  active: boolean;
  eventTypes: readonly string[];
  /** Empty means all jobs of the account. */
  jobIds: Pick<ReadonlySet<string>, 'size' | 'has'>;
  filters: FilterSets | null;
}

/** The fields of an event that subscriptions select by. */
export interface MatchedEvent {
  eventType: EventType;
  data: Pick<RunDetails, 'jobId' | 'environmentId' | 'projectId' | 'runStatusCode'>;
}

/** The first condition that an event fails, in the order of evaluation. */
export const MISMATCHES = ['inactive', 'event_type', 'job', 'run_status', 'environment', 'project'] as const;
export type Mismatch = (typeof MISMATCHES)[number];

export type EventMatch = { matches: true; reason?: never } | { matches: false; reason: Mismatch };

// Shared, because a fan-out evaluates each subscription of the account.
const MATCH: EventMatch = { matches: true };
const MISMATCH = Object.fromEntries(
  MISMATCHES.map((reason) => [reason, { matches: false, reason }]),
) as Record<Mismatch, EventMatch>;

/**
 * Whether a subscription hears about an event, and otherwise the first condition that fails: its event types include the
 * event's, its job list includes the job or is empty, and each of its filters includes the event's value
 * (docs/contract.md#events). An inactive subscription hears about none. The only evaluation of these fields: the
 * dispatcher, recovery, the feed, the preview and the explanation use it.
 */
export function eventMatches(
  { active, eventTypes, jobIds, filters }: EventSelection,
  { eventType, data }: MatchedEvent,
): EventMatch {
  if (!active) return MISMATCH.inactive;
  if (!eventTypes.includes(eventType)) return MISMATCH.event_type;
  if (jobIds.size > 0 && !jobIds.has(data.jobId)) return MISMATCH.job;
  if (filters === null) return MATCH;
  const { runStatuses, environmentIds, projectIds } = filters;
  if (runStatuses !== null && !runStatuses.includes(data.runStatusCode)) return MISMATCH.run_status;
  if (environmentIds !== null && !environmentIds.has(data.environmentId)) return MISMATCH.environment;
  if (projectIds !== null && !projectIds.has(data.projectId)) return MISMATCH.project;
  return MATCH;
}
