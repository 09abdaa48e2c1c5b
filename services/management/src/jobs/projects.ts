/**
 * Read access to the projects and environments of an account (docs/contract.md#projects-and-environments). They exist
 * from the first job that names them on.
 */
import { integerIdFromText } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, type AccountRequest, READ_RUNS } from '../http/endpoint.ts';
import { type EndpointResponse, pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { listOf } from '../http/filter-readers.ts';
import { relatedNames } from '../http/include-related.ts';
import { orderOf, QueryReader, searchText } from '../http/query-parameters.ts';
import { idParameter, readAccountId, readIds, readNameConditions, readState } from './list-filters.ts';
import {
  ENVIRONMENT_VERSION,
  type EnvironmentView,
  environmentsOfProjects,
  environmentViews,
  type NamedRow,
  type ProjectView,
  projectViews,
} from './project-response.ts';

/** Arguments of the functions that list or get. */
interface Listing {
  prisma: PrismaClient;
  request: AccountRequest;
}

/** Mounts the endpoints in both versions of the API, because its clients use both. */
export function projectEndpoints({ prisma }: { prisma: PrismaClient }): AccountEndpoint[] {
  const get = (
    path: `/api/${string}/:account_id/${string}`,
    handler: (listing: Listing) => Promise<EndpointResponse>,
  ): AccountEndpoint => ({
    method: 'GET',
    path,
    access: READ_RUNS,
    isSlowRead: true,
    handle: (request) => handler({ prisma, request }),
  });
  const versionedEndpoints = (['v2', 'v3'] as const).flatMap((version) => {
    const account = `/api/${version}/accounts/:account_id` as const;
    return [
      get(`${account}/projects`, listProjects),
      get(`${account}/projects/:project_id`, getProject),
      get(`${account}/environments`, (listing) => listEnvironments(listing, null)),
      get(`${account}/environments/:environment_id`, (listing) => getEnvironment(listing, null)),
    ];
  });
  const projectPath = '/api/v3/accounts/:account_id/projects/:project_id';
  return [
    ...versionedEndpoints,
    get(`${projectPath}/environments`, async (listing) =>
      listEnvironments(listing, await requestedProject(listing)),
    ),
    get(`${projectPath}/environments/:environment_id`, async (listing) =>
      getEnvironment(listing, await requestedProject(listing)),
    ),
    get(`${projectPath}/environment-variables/job`, listJobVariables),
  ];
}

/** Names that `include_related` accepts. Of the objects of a project only its environments exist here. */
export const PROJECT_RELATED = [
  'environments',
  'connection',
  'repository',
  'docs_job_id',
  'freshness_job_id',
] as const;
export const ENVIRONMENT_RELATED = ['project'] as const;

type Related<Names extends readonly string[]> = ReadonlySet<Names[number]> | null;

async function listProjects({ prisma, request: { account, query } }: Listing): Promise<EndpointResponse> {
  const reader = new QueryReader(query);
  const { page, order, conditions } = readListParameters(reader, account.id);
  const ids = readIds(reader, { lists: ['id__in', 'pk__in'] });
  const related = reader.list('include_related', relatedNames(PROJECT_RELATED));
  reader.check();
  const where = {
    ...jobsCondition(account.id),
    AND: [...conditions, ...ids.map((id) => ({ id }))],
  };
  const [rows, totalCount] = await Promise.all([
    prisma.project.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.project.count({ where }),
  ]);
  const data = await projectsWith(prisma, account.id, rows, related);
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

async function getProject({ prisma, request }: Listing): Promise<EndpointResponse> {
  const reader = new QueryReader(request.query);
  const related = reader.list('include_related', relatedNames(PROJECT_RELATED));
  reader.check();
  const { id: accountId } = request.account;
  const rows = await prisma.project.findMany({
    where: { ...jobsCondition(accountId), id: pathId(request, 'project_id') },
  });
  return singleResponse(await projectsWith(prisma, accountId, rows, related));
}

async function projectsWith(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly NamedRow[],
  related: Related<typeof PROJECT_RELATED>,
): Promise<ProjectView[]> {
  const views = await projectViews(prisma, accountId, rows);
  const ids = rows.map(({ id }) => id);
  const hasEnvironments = related?.has('environments') ?? false;
  const environments = hasEnvironments ? await environmentsOfProjects(prisma, accountId, ids) : null;
  return ids.flatMap((id) => {
    const view = views.get(id);
    if (view === undefined) return [];
    return [{ ...view, ...(environments && { environments: environments.get(id) ?? [] }) }];
  });
}

/** @param projectId project of the path; null if the path has none */
async function listEnvironments(
  { prisma, request: { account, query } }: Listing,
  projectId: bigint | null,
): Promise<EndpointResponse> {
  const reader = new QueryReader(query);
  const { page, order, conditions } = readListParameters(reader, account.id);
  const ids = readIds(reader, { lists: ['id__in', 'pk__in'] });
  const projectIds = readIds(reader, {
    ...(projectId === null && { one: 'project_id' }),
    lists: ['project_id__in'],
  });
  const isEmpty = readConstants(reader);
  const related = reader.list('include_related', relatedNames(ENVIRONMENT_RELATED));
  reader.check();
  const requested = projectId === null ? projectIds : [...projectIds, { in: [projectId] }];
  const where = {
    ...jobsCondition(account.id, requested),
    AND: [...conditions, ...ids.map((id) => ({ id })), ...(isEmpty ? [NOTHING] : [])],
  };
  const [rows, totalCount] = await Promise.all([
    prisma.environment.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.environment.count({ where }),
  ]);
  const single = requested.length === 1 && requested[0]?.in.length === 1 ? requested[0].in[0] : undefined;
  const data = await environmentsWith(prisma, account.id, rows, { projectId: single ?? null, related });
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

/** Returns the project of the path, or throws a 404. */
async function requestedProject({ prisma, request }: Listing): Promise<bigint> {
  const id = pathId(request, 'project_id');
  const found = await prisma.project.findFirst({ where: { ...jobsCondition(request.account.id), id } });
  if (found === null) throw new NotFoundError();
  return id;
}

async function getEnvironment(
  { prisma, request }: Listing,
  projectId: bigint | null,
): Promise<EndpointResponse> {
  const reader = new QueryReader(request.query);
  const related = reader.list('include_related', relatedNames(ENVIRONMENT_RELATED));
  reader.check();
  const { id: accountId } = request.account;
  const projects = projectId === null ? [] : [{ in: [projectId] }];
  const where = { ...jobsCondition(accountId, projects), id: pathId(request, 'environment_id') };
  const rows = await prisma.environment.findMany({ where });
  return singleResponse(await environmentsWith(prisma, accountId, rows, { projectId, related }));
}

/** @param projectId the project that the request names, and of which the environments are shown; null for none */
async function environmentsWith(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly NamedRow[],
  { projectId, related }: { projectId: bigint | null; related: Related<typeof ENVIRONMENT_RELATED> },
): Promise<EnvironmentView[]> {
  const views = await environmentViews(prisma, accountId, rows);
  const environments = rows.flatMap(({ id }) => {
    const view = views.get(id);
    if (view === undefined) return [];
    return [projectId === null ? view : { ...view, project_id: Number(projectId) }];
  });
  if (!related?.has('project')) return environments;
  const projectRows = await prisma.project.findMany({
    where: { accountId: BigInt(accountId), id: { in: environments.map((one) => BigInt(one.project_id)) } },
  });
  const projects = await projectViews(prisma, accountId, projectRows);
  return environments.map((one) => ({ ...one, project: projects.get(BigInt(one.project_id)) ?? null }));
}

/**
 * Returns the environment variables of a job by name. There are none: a job runner has its own. Clients read them before
 * they use a job, and do not expect a 404.
 */
async function listJobVariables(listing: Listing): Promise<EndpointResponse> {
  const reader = new QueryReader(listing.request.query);
  readAccountId(reader, listing.request.account.id);
  reader.filter('job_definition_id', idParameter);
  reader.check();
  await requestedProject(listing);
  return { code: 200, data: {} };
}

function singleResponse(views: readonly object[]): EndpointResponse {
  if (views[0] === undefined) throw new NotFoundError();
  return { code: 200, data: views[0] };
}

/** Throws a 404 for text that is not an id. */
export function pathId(request: AccountRequest, name: string): bigint {
  const id = integerIdFromText(request.param(name));
  if (id === null) throw new NotFoundError();
  return BigInt(id);
}

export const LIST_ORDERS = ['id', 'name'] as const;

/** A condition that no row meets. */
const NOTHING = { id: { in: [] } };

/** Reads the parameters of both lists: a page, an order, and conditions on name and state. */
function readListParameters(reader: QueryReader, accountId: number) {
  const { by, isDescending } = reader.filter('order_by', orderOf(LIST_ORDERS)) ?? {
    by: 'id',
    isDescending: true,
  };
  readAccountId(reader, accountId);
  const names = readNameConditions(reader, ['search', 'name__icontains']);
  return {
    page: reader.page(),
    order: { [by]: isDescending ? 'desc' : 'asc' } as const,
    // None of them is ever deleted.
    conditions: readState(reader) === 1 ? names : [...names, NOTHING],
  };
}

/** Reads filters by fields that have the same value in all environments. Returns whether one of them excludes it. */
function readConstants(reader: QueryReader): boolean {
  const texts = listOf((text) => text, 'must be texts, separated by commas');
  const type = reader.filter('type', searchText);
  const version = reader.filter('dbt_version', searchText);
  const versions = reader.list('dbt_version__in', texts);
  const deploymentTypes = reader.list('deployment_type__in', texts);
  const credentialsId = reader.filter('credentials_id', idParameter);
  return (
    (type !== null && type !== 'deployment') ||
    (version !== null && version !== ENVIRONMENT_VERSION) ||
    (versions !== null && !versions.includes(ENVIRONMENT_VERSION)) ||
    deploymentTypes !== null ||
    credentialsId !== null
  );
}

/** @param projects conditions on the project of the jobs; empty for any */
function jobsCondition(accountId: number, projects: readonly { in: bigint[] }[] = []) {
  const jobs = { accountId: BigInt(accountId), AND: projects.map((projectId) => ({ projectId })) };
  return { accountId: BigInt(accountId), jobs: { some: jobs } };
}
