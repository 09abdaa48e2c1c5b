/**
 * Read access to the projects and environments of an account (docs/contract.md#runs-and-jobs). They exist from the
 * first job that names them on. Both belong to the account, so jobs of several projects may share an environment.
 */
import { integerIdFromText, secondsTimestamp } from '@runhook/contract';
import { containsText, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, type AccountRequest, READ_RUNS } from '../http/endpoint.ts';
import { type EndpointResponse, pageExtra } from '../http/envelope.ts';
import { NotFoundError } from '../http/errors.ts';
import { integer, orderOf, QueryReader, searchText } from '../http/query-parameters.ts';

/** A project for clients of this API family; `state` 1 means not deleted. Times are ISO 8601 UTC in seconds. */
export interface ProjectView {
  id: number;
  account_id: number;
  name: string;
  description: string;
  state: 1;
  created_at: string;
  updated_at: string;
}

/** An environment, in the same format as {@link ProjectView}. */
export interface EnvironmentView {
  id: number;
  account_id: number;
  /** The requested project, otherwise that of the environment's oldest job. */
  project_id: number;
  name: string;
  type: 'deployment';
  state: 1;
  created_at: string;
  updated_at: string;
}

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
      get(`${account}/environments`, listEnvironments),
      get(`${account}/environments/:environment_id`, getEnvironment),
    ];
  });
  const projectEnvironmentsPath = '/api/v3/accounts/:account_id/projects/:project_id/environments';
  return [
    ...versionedEndpoints,
    get(projectEnvironmentsPath, listEnvironmentsOfProject),
    get(`${projectEnvironmentsPath}/:environment_id`, getEnvironmentOfProject),
  ];
}

async function listProjects({ prisma, request: { account, query } }: Listing): Promise<EndpointResponse> {
  const reader = new QueryReader(query);
  const { page, order, names } = readListParameters(reader);
  reader.check();
  const where = { ...jobsCondition(account.id), AND: names };
  const [rows, totalCount] = await Promise.all([
    prisma.project.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.project.count({ where }),
  ]);
  const data = await projectViews(prisma, account.id, rows);
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

async function getProject({ prisma, request }: Listing): Promise<EndpointResponse> {
  const { id: accountId } = request.account;
  const id = pathId(request, 'project_id');
  const rows = await prisma.project.findMany({ where: { ...jobsCondition(accountId), id } });
  return singleResponse(await projectViews(prisma, accountId, rows));
}

async function listEnvironments(listing: Listing): Promise<EndpointResponse> {
  return await listProjectEnvironments(listing, null);
}

async function listEnvironmentsOfProject(listing: Listing): Promise<EndpointResponse> {
  await getProject(listing);
  return await listProjectEnvironments(listing, Number(pathId(listing.request, 'project_id')));
}

async function listProjectEnvironments(
  { prisma, request: { account, query } }: Listing,
  pathProjectId: number | null,
): Promise<EndpointResponse> {
  const reader = new QueryReader(query);
  const { page, order, names } = readListParameters(reader);
  const projectId = pathProjectId ?? reader.optional('project_id', idParameter);
  reader.check();
  const where = { ...jobsCondition(account.id, projectId), AND: names };
  const [rows, totalCount] = await Promise.all([
    prisma.environment.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.environment.count({ where }),
  ]);
  const data = await environmentViews(prisma, account.id, rows, projectId);
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

async function getEnvironment(listing: Listing): Promise<EndpointResponse> {
  return await findEnvironment(listing, null);
}

async function getEnvironmentOfProject(listing: Listing): Promise<EndpointResponse> {
  return await findEnvironment(listing, Number(pathId(listing.request, 'project_id')));
}

async function findEnvironment(
  { prisma, request }: Listing,
  projectId: number | null,
): Promise<EndpointResponse> {
  const { id: accountId } = request.account;
  const id = pathId(request, 'environment_id');
  const rows = await prisma.environment.findMany({ where: { ...jobsCondition(accountId, projectId), id } });
  return singleResponse(await environmentViews(prisma, accountId, rows, projectId));
}

function singleResponse(views: readonly object[]): EndpointResponse {
  if (views[0] === undefined) throw new NotFoundError();
  return { code: 200, data: views[0] };
}

export const idParameter = integer(1, Number.MAX_SAFE_INTEGER);

/** Throws a 404 for text that is not an id. */
export function pathId(request: AccountRequest, name: string): bigint {
  const id = integerIdFromText(request.param(name));
  if (id === null) throw new NotFoundError();
  return BigInt(id);
}

export const LIST_ORDERS = ['id', 'name'] as const;

/** Reads the parameters of both lists: a page, an order, and a part of the name under either of two parameter names. */
function readListParameters(reader: QueryReader) {
  const { by, isDescending } = reader.optional('order_by', orderOf(LIST_ORDERS)) ?? {
    by: 'id',
    isDescending: true,
  };
  const parts = [reader.optional('search', searchText), reader.optional('name__icontains', searchText)];
  return {
    page: reader.page(),
    order: { [by]: isDescending ? 'desc' : 'asc' } as const,
    names: parts.flatMap((part) => (part === null ? [] : [{ name: containsText(part) }])),
  };
}

/** @param projectId project of the jobs; null for any */
function jobsCondition(accountId: number, projectId: number | null = null) {
  const jobs = { accountId: BigInt(accountId), ...(projectId !== null && { projectId: BigInt(projectId) }) };
  return { accountId: BigInt(accountId), jobs: { some: jobs } };
}

/** Returns views in input order. */
export async function projectViews(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly Prisma.ProjectModel[],
): Promise<ProjectView[]> {
  const oldestJobsByGroup = await oldestJobs(prisma, accountId, {
    projectId: { in: rows.map(({ id }) => id) },
  });
  return rows.map(({ id, name }) => {
    const { createdAt } = findOldestJob(oldestJobsByGroup.filter(({ projectId }) => projectId === id));
    const creationTime = secondsTimestamp(createdAt);
    return {
      id: Number(id),
      account_id: accountId,
      name,
      description: '',
      state: 1,
      created_at: creationTime,
      updated_at: creationTime,
    };
  });
}

/** Returns views in input order. @param projectId the requested project; null for none */
export async function environmentViews(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly Prisma.EnvironmentModel[],
  projectId: number | null,
): Promise<EnvironmentView[]> {
  const oldestJobsByGroup = await oldestJobs(prisma, accountId, {
    environmentId: { in: rows.map(({ id }) => id) },
  });
  return rows.map(({ id, name }) => {
    const first = findOldestJob(oldestJobsByGroup.filter(({ environmentId }) => environmentId === id));
    const creationTime = secondsTimestamp(first.createdAt);
    return {
      id: Number(id),
      account_id: accountId,
      project_id: projectId ?? Number(first.projectId),
      name,
      type: 'deployment',
      state: 1,
      created_at: creationTime,
      updated_at: creationTime,
    };
  });
}

interface OldestJob {
  id: bigint;
  projectId: bigint;
  environmentId: bigint;
  createdAt: Date;
}

/** Returns the oldest job of each project in each environment, by the index of an account's jobs. */
async function oldestJobs(
  prisma: PrismaClient,
  accountId: number,
  where: Prisma.JobWhereInput,
): Promise<OldestJob[]> {
  const groups = await prisma.job.groupBy({
    by: ['projectId', 'environmentId'],
    where: { accountId: BigInt(accountId), ...where },
    _min: { id: true, createdAt: true },
  });
  return groups.map(({ projectId, environmentId, _min }) => {
    if (_min.id === null || _min.createdAt === null) throw new TypeError('a group of no jobs');
    return { id: _min.id, projectId, environmentId, createdAt: _min.createdAt };
  });
}

function findOldestJob(jobs: readonly OldestJob[]): OldestJob {
  const [first, ...others] = jobs;
  if (first === undefined) throw new TypeError('a project or an environment without a job');
  return others.reduce((found, job) => (job.id < found.id ? job : found), first);
}
