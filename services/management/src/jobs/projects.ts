/**
 * Read access to the projects and environments of an account (docs/contract.md#runs-and-jobs). They exist from the
 * first job that names them on. Both belong to the account, so jobs of several projects may share an environment.
 */
import { integerIdFromText, secondsTimestamp } from '@runhook/contract';
import { containing, type Prisma, type PrismaClient } from '@runhook/database/prisma';
import { type AccountEndpoint, type AccountRequest, READ_RUNS } from '../http/endpoint.ts';
import { type Answer, pageExtra } from '../http/envelope.ts';
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
    answer: (listing: Listing) => Promise<Answer>,
  ): AccountEndpoint => ({
    method: 'GET',
    path,
    access: READ_RUNS,
    handle: (request) => answer({ prisma, request }),
  });
  const both = (['v2', 'v3'] as const).flatMap((version) => {
    const account = `/api/${version}/accounts/:account_id` as const;
    return [
      get(`${account}/projects`, listProjects),
      get(`${account}/projects/:project_id`, getProject),
      get(`${account}/environments`, listEnvironments),
      get(`${account}/environments/:environment_id`, getEnvironment),
    ];
  });
  const ofProject = '/api/v3/accounts/:account_id/projects/:project_id/environments';
  return [
    ...both,
    get(ofProject, listEnvironmentsOfProject),
    get(`${ofProject}/:environment_id`, getEnvironmentOfProject),
  ];
}

async function listProjects({ prisma, request: { account, query } }: Listing): Promise<Answer> {
  const reader = new QueryReader(query);
  const { page, order, names } = readNamed(reader);
  reader.check();
  const where = { ...withJobs(account.id), AND: names };
  const [rows, totalCount] = await Promise.all([
    prisma.project.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.project.count({ where }),
  ]);
  const data = await projectViews(prisma, account.id, rows);
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

async function getProject({ prisma, request }: Listing): Promise<Answer> {
  const { id: accountId } = request.account;
  const id = idOfPath(request, 'project_id');
  const rows = await prisma.project.findMany({ where: { ...withJobs(accountId), id } });
  return one(await projectViews(prisma, accountId, rows));
}

async function listEnvironments(listing: Listing): Promise<Answer> {
  return await environmentsOf(listing, null);
}

async function listEnvironmentsOfProject(listing: Listing): Promise<Answer> {
  await getProject(listing);
  return await environmentsOf(listing, Number(idOfPath(listing.request, 'project_id')));
}

async function environmentsOf(
  { prisma, request: { account, query } }: Listing,
  ofPath: number | null,
): Promise<Answer> {
  const reader = new QueryReader(query);
  const { page, order, names } = readNamed(reader);
  const projectId = ofPath ?? reader.optional('project_id', idParameter);
  reader.check();
  const where = { ...withJobs(account.id, projectId), AND: names };
  const [rows, totalCount] = await Promise.all([
    prisma.environment.findMany({ where, orderBy: order, take: page.limit, skip: page.offset }),
    prisma.environment.count({ where }),
  ]);
  const data = await environmentViews(prisma, account.id, rows, projectId);
  return { code: 200, data, extra: pageExtra(page, totalCount, data.length) };
}

async function getEnvironment(listing: Listing): Promise<Answer> {
  return await environmentOf(listing, null);
}

async function getEnvironmentOfProject(listing: Listing): Promise<Answer> {
  return await environmentOf(listing, Number(idOfPath(listing.request, 'project_id')));
}

async function environmentOf({ prisma, request }: Listing, projectId: number | null): Promise<Answer> {
  const { id: accountId } = request.account;
  const id = idOfPath(request, 'environment_id');
  const rows = await prisma.environment.findMany({ where: { ...withJobs(accountId, projectId), id } });
  return one(await environmentViews(prisma, accountId, rows, projectId));
}

function one(views: readonly object[]): Answer {
  if (views[0] === undefined) throw new NotFoundError();
  return { code: 200, data: views[0] };
}

export const idParameter = integer(1, Number.MAX_SAFE_INTEGER);

/** Throws a 404 for text that is not an id. */
export function idOfPath(request: AccountRequest, name: string): bigint {
  const id = integerIdFromText(request.param(name));
  if (id === null) throw new NotFoundError();
  return BigInt(id);
}

export const NAMED_ORDERS = ['id', 'name'] as const;

/** Reads the parameters of both lists: a page, an order, and a part of the name under either of two parameter names. */
function readNamed(reader: QueryReader) {
  const { by, isDescending } = reader.optional('order_by', orderOf(NAMED_ORDERS)) ?? {
    by: 'id',
    isDescending: true,
  };
  const parts = [reader.optional('search', searchText), reader.optional('name__icontains', searchText)];
  return {
    page: reader.page(),
    order: { [by]: isDescending ? 'desc' : 'asc' } as const,
    names: parts.flatMap((part) => (part === null ? [] : [{ name: containing(part) }])),
  };
}

/** @param projectId project of the jobs; null for any */
function withJobs(accountId: number, projectId: number | null = null) {
  const jobs = { accountId: BigInt(accountId), ...(projectId !== null && { projectId: BigInt(projectId) }) };
  return { accountId: BigInt(accountId), jobs: { some: jobs } };
}

/** Returns views in input order. */
export async function projectViews(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly Prisma.ProjectModel[],
): Promise<ProjectView[]> {
  const firsts = await oldestJobs(prisma, accountId, { projectId: { in: rows.map(({ id }) => id) } });
  return rows.map(({ id, name }) => {
    const { createdAt } = oldest(firsts.filter(({ projectId }) => projectId === id));
    const created = secondsTimestamp(createdAt);
    return {
      id: Number(id),
      account_id: accountId,
      name,
      description: '',
      state: 1,
      created_at: created,
      updated_at: created,
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
  const firsts = await oldestJobs(prisma, accountId, { environmentId: { in: rows.map(({ id }) => id) } });
  return rows.map(({ id, name }) => {
    const first = oldest(firsts.filter(({ environmentId }) => environmentId === id));
    const created = secondsTimestamp(first.createdAt);
    return {
      id: Number(id),
      account_id: accountId,
      project_id: projectId ?? Number(first.projectId),
      name,
      type: 'deployment',
      state: 1,
      created_at: created,
      updated_at: created,
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

function oldest(jobs: readonly OldestJob[]): OldestJob {
  const [first, ...others] = jobs;
  if (first === undefined) throw new TypeError('a project or an environment without a job');
  return others.reduce((found, job) => (job.id < found.id ? job : found), first);
}
