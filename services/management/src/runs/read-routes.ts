import { integerIdFromText, RUN_STATUSES, runStatusOfText, STORED_RUN_STATUSES } from '@runhook/contract';
import type { Pool } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import type { BaseUrl } from '../http/base-url.ts';
import { type AccountEndpoint, type AccountRequest, READ_RUNS } from '../http/endpoint.ts';
import { type EndpointResponse, pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { accountIdOf, idsIn, listOf, timeRange } from '../http/filter-readers.ts';
import { relatedNames } from '../http/include-related.ts';
import {
  createReader,
  integer,
  orderOf,
  QueryReader,
  searchText,
  timestamp,
} from '../http/query-parameters.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { listRuns, RUN_ORDERS } from './list-runs.ts';
import { relatedOfRuns } from './related-of-runs.ts';
import { RUN_RELATED, type RunRelatedName, runResponse } from './run-response.ts';
import type { Runs } from './runs.ts';
import { loadRunSteps } from './step-statements.ts';

export const RUNS_PATH = '/api/v2/accounts/:account_id/runs';

export interface RunReadDependencies {
  runs: Pick<Runs, 'find'>;
  reads: ReplicaReads;
  prisma: PrismaClient;
  pool: Pool;
  baseUrl: BaseUrl;
}

/** Reads of runs (docs/contract.md#runs-and-jobs), on every plan. */
export function runReadEndpoints(deps: RunReadDependencies): AccountEndpoint[] {
  return [
    {
      method: 'GET',
      path: RUNS_PATH,
      access: READ_RUNS,
      isSlowRead: true,
      handle: (request) => list(deps, request),
    },
    {
      method: 'GET',
      path: `${RUNS_PATH}/:run_id`,
      access: READ_RUNS,
      handle: (request) => find(deps, request),
    },
  ];
}

async function list(
  { reads, prisma, baseUrl }: RunReadDependencies,
  request: AccountRequest,
): Promise<EndpointResponse> {
  const { account, query } = request;
  const reader = new QueryReader(query);
  reader.filter('account_id', accountIdOf(account.id));
  const filters = {
    ids: [reader.list('id__in', idsIn)],
    jobIds: [reader.filter('job_id', id), reader.filter('job_definition_id', id)],
    projectIds: [single(reader.filter('project_id', id)), reader.list('project_id__in', idsIn)],
    environmentIds: [single(reader.filter('environment_id', id)), reader.list('environment_id__in', idsIn)],
    statuses: [single(reader.filter('status', status)), reader.list('status__in', statusesIn)],
    deferringRunId: reader.filter('deferring_run_id', id),
    search: reader.optional('search', searchText),
    since: reader.filter('since', timestamp),
    until: reader.filter('until', timestamp),
    createdAt: reader.list('created_at__range', timeRange),
    finishedAt: reader.list('finished_at__range', timeRange),
  };
  const order = reader.filter('order_by', orderOf(RUN_ORDERS));
  const names = reader.list('include_related', relatedNames(RUN_RELATED)) ?? NO_NAMES;
  const page = reader.page();
  reader.check();
  const database = reads.databaseFor(request);
  const { runs, totalCount } = await listRuns(database, account.id, filters, { ...page, order });
  const related = await relatedOfRuns(prisma, account.id, runs, names);
  const texts = stepTextsOf(names, request);
  const runIds = runs.map((run) => run.id);
  const steps = texts.withLogs ? await loadRunSteps(database, account.id, runIds, texts) : null;
  const base = baseUrl(request);
  const data = runs.map((run, index) =>
    runResponse(run, {
      baseUrl: base,
      related: { ...related[index], ...(steps && { run_steps: steps.get(run.id) ?? [] }) },
    }),
  );
  return { code: 200, data, extra: pageExtra(page, totalCount, runs.length) };
}

async function find(
  { runs, prisma, pool, baseUrl }: RunReadDependencies,
  request: AccountRequest,
): Promise<EndpointResponse> {
  const { account, query } = request;
  const reader = new QueryReader(query);
  reader.filter('account_id', accountIdOf(account.id));
  // Clients that share the parameters of lists send it; one run is in any order.
  reader.filter('order_by', orderOf(RUN_ORDERS));
  const names = reader.list('include_related', relatedNames(RUN_RELATED)) ?? NO_NAMES;
  reader.check();
  const run = await runs.find(account.id, runIdOf(request));
  if (!run) throw new NotFoundError();
  const [related] = await relatedOfRuns(prisma, account.id, [run], names);
  // Clients read the steps of one run without requesting them; only their texts must be requested.
  const steps = await loadRunSteps(pool, account.id, [run.id], stepTextsOf(names, request));
  const run_steps = steps.get(run.id) ?? [];
  return {
    code: 200,
    data: runResponse(run, { baseUrl: baseUrl(request), related: { ...related, run_steps } }),
  };
}

function stepTextsOf(names: ReadonlySet<RunRelatedName>, { requireMemory }: AccountRequest) {
  const withDebugLogs = names.has('debug_logs');
  return { withLogs: withDebugLogs || names.has('run_steps'), withDebugLogs, requireMemory };
}

const NO_NAMES: ReadonlySet<RunRelatedName> = new Set();

function single<T>(value: T | null): readonly T[] | null {
  return value === null ? null : [value];
}

const id = integer(1, Number.MAX_SAFE_INTEGER);

const STATUS_TEXTS = STORED_RUN_STATUSES.map((word) => `${word} (${RUN_STATUSES[word].code})`).join(', ');

/** Accepts a status by its number or a word. */
const status = createReader(runStatusOfText, `must be one of ${STATUS_TEXTS}`);
const statusesIn = listOf(runStatusOfText, `must have items of ${STATUS_TEXTS}, separated by commas`);

/** Throws a 404 for text that is not a run id. */
export function runIdOf(request: Pick<AccountRequest, 'param'>): number {
  const runId = integerIdFromText(request.param('run_id'));
  if (runId === null) throw new NotFoundError();
  return runId;
}
