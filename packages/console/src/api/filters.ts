import { keepPreviousData, queryOptions } from '@tanstack/react-query';
import { type Query, request } from './request.ts';

const ENVIRONMENTS = '/api/v3/accounts/{account_id}/environments';
const PROJECTS = '/api/v3/accounts/{account_id}/projects';

const SHOWN_MAX = 50;

/** A project or an environment. */
export interface NamedResource {
  id: number;
  name: string;
}

/** Kinds of resources by which events are filtered. */
export type ResourceKind = 'environments' | 'projects';

/** Returns the first resources by name whose name contains the text; for an empty text, the first of all. */
export function resourceSearchQuery(accountId: number, kind: ResourceKind, search: string) {
  return queryOptions({
    queryKey: ['accounts', accountId, kind, 'search', search],
    queryFn: async ({ signal }): Promise<NamedResource[]> => {
      const query = { search, limit: SHOWN_MAX, order_by: 'name' } as const;
      return readResources(accountId, kind, query, signal);
    },
    placeholderData: keepPreviousData,
  });
}

/** Maximum page size of the API. */
const IDS_MAX = 100;

/** Returns the resources with these ids that still exist, for their names. */
export function resourcesByIdQuery(accountId: number, kind: ResourceKind, ids: readonly string[]) {
  const sorted = [...new Set(ids)].sort();
  return queryOptions({
    queryKey: ['accounts', accountId, kind, 'ids', sorted],
    enabled: sorted.length > 0,
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const resources: NamedResource[] = [];
      for (let first = 0; first < sorted.length; first += IDS_MAX) {
        const query = { id__in: sorted.slice(first, first + IDS_MAX).join(','), limit: IDS_MAX };
        resources.push(...(await readResources(accountId, kind, query, signal)));
      }
      return resources;
    },
  });
}

async function readResources(
  accountId: number,
  kind: ResourceKind,
  query: Query<'get', typeof ENVIRONMENTS> & Query<'get', typeof PROJECTS>,
  signal: AbortSignal,
): Promise<NamedResource[]> {
  const parts = { path: { account_id: accountId }, query, signal };
  const { data } = await (kind === 'projects'
    ? request('get', PROJECTS, parts)
    : request('get', ENVIRONMENTS, parts));
  return data;
}

const PREVIEW = '/api/v3/accounts/{account_id}/webhooks/preview';

/** Fields by which a webhook selects events; lists of ids and codes. An empty list means all. */
export interface EventSelection {
  eventTypes: readonly string[];
  jobIds: readonly string[];
  runStatuses: readonly string[];
  environmentIds: readonly string[];
  projectIds: readonly string[];
}

/** Counts the events of the last days that a selection matches. */
export function matchCountQuery(accountId: number, selection: EventSelection) {
  const query = {
    event_types: selection.eventTypes.join(','),
    job_ids: selection.jobIds.join(','),
    run_statuses: selection.runStatuses.join(','),
    environment_ids: selection.environmentIds.join(','),
    project_ids: selection.projectIds.join(','),
  };
  return queryOptions({
    queryKey: ['accounts', accountId, 'match-count', query],
    queryFn: async ({ signal }) =>
      (await request('get', PREVIEW, { path: { account_id: accountId }, query, signal })).data,
    enabled: selection.eventTypes.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });
}
