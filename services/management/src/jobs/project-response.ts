/**
 * The representation of projects and environments. Both belong to the account, so jobs of several projects may share an
 * environment. They exist from the first job that names them on.
 */
import { microsecondTimestamp } from '@runhook/contract';
import type { Prisma, PrismaClient } from '@runhook/database/prisma';

/** A project for clients of this API family. Times are ISO 8601 UTC with microseconds and `Z`. */
export interface ProjectView {
  id: number;
  account_id: number;
  name: string;
  description: string;
  /** 1: not deleted. */
  state: 1;
  connection: null;
  connection_id: null;
  repository: null;
  repository_id: null;
  dbt_project_subdirectory: null;
  docs_job_id: null;
  freshness_job_id: null;
  created_at: string;
  updated_at: string;
  /** Only if requested. */
  environments?: EnvironmentView[];
}

/** An environment, in the same format as {@link ProjectView}. */
export interface EnvironmentView {
  id: number;
  account_id: number;
  /** The requested project, otherwise that of the environment's oldest job. */
  project_id: number;
  name: string;
  type: 'deployment';
  deployment_type: null;
  state: 1;
  /** The job runner chooses the version. */
  dbt_version: typeof ENVIRONMENT_VERSION;
  use_custom_branch: false;
  custom_branch: null;
  supports_docs: false;
  connection_id: null;
  credentials_id: null;
  created_at: string;
  updated_at: string;
  /** Only if requested; null if it has just lost its last job. */
  project?: ProjectView | null;
}

/** Clients expect a text. */
export const ENVIRONMENT_VERSION = 'latest';

/** The columns of a project or an environment that its representation needs. */
export interface NamedRow {
  id: bigint;
  name: string;
}

/** Returns the representations of projects by id; one whose last job has just been moved or purged is missing. */
export async function projectViews(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly NamedRow[],
): Promise<Map<bigint, ProjectView>> {
  const jobs = await oldestJobOfEach(prisma, accountId, 'projectId', rows);
  const views = new Map<bigint, ProjectView>();
  for (const { id, name } of rows) {
    const first = jobs.get(id);
    if (first !== undefined) views.set(id, projectView(accountId, { id, name }, first));
  }
  return views;
}

/** Returns the representation of a project. @param first its oldest job */
export function projectView(
  accountId: number,
  { id, name }: NamedRow,
  { createdAt }: Pick<OldestJob, 'createdAt'>,
): ProjectView {
  const creationTime = microsecondTimestamp(createdAt);
  return {
    id: Number(id),
    account_id: accountId,
    name,
    description: '',
    state: 1,
    connection: null,
    connection_id: null,
    repository: null,
    repository_id: null,
    dbt_project_subdirectory: null,
    docs_job_id: null,
    freshness_job_id: null,
    created_at: creationTime,
    updated_at: creationTime,
  };
}

/** Returns the representations of environments by id, like {@link projectViews}. */
export async function environmentViews(
  prisma: PrismaClient,
  accountId: number,
  rows: readonly NamedRow[],
): Promise<Map<bigint, EnvironmentView>> {
  const jobs = await oldestJobOfEach(prisma, accountId, 'environmentId', rows);
  const views = new Map<bigint, EnvironmentView>();
  for (const { id, name } of rows) {
    const first = jobs.get(id);
    if (first !== undefined) views.set(id, environmentView(accountId, { id, name }, first));
  }
  return views;
}

/** Returns the representation of an environment. @param first its oldest job */
export function environmentView(
  accountId: number,
  { id, name }: NamedRow,
  first: Pick<OldestJob, 'createdAt' | 'projectId'>,
): EnvironmentView {
  const creationTime = microsecondTimestamp(first.createdAt);
  return {
    id: Number(id),
    account_id: accountId,
    project_id: Number(first.projectId),
    name,
    type: 'deployment',
    deployment_type: null,
    state: 1,
    dbt_version: ENVIRONMENT_VERSION,
    use_custom_branch: false,
    custom_branch: null,
    supports_docs: false,
    connection_id: null,
    credentials_id: null,
    created_at: creationTime,
    updated_at: creationTime,
  };
}

/** Returns the environments of the jobs of each project, by the id of the project. */
export async function environmentsOfProjects(
  prisma: PrismaClient,
  accountId: number,
  projectIds: readonly bigint[],
): Promise<Map<bigint, EnvironmentView[]>> {
  const groups = await oldestJobs(prisma, accountId, { projectId: { in: [...projectIds] } });
  const rows = await prisma.environment.findMany({
    where: { accountId: BigInt(accountId), id: { in: groups.map(({ environmentId }) => environmentId) } },
  });
  const views = await environmentViews(prisma, accountId, rows);
  const environments = new Map<bigint, EnvironmentView[]>();
  for (const { projectId, environmentId } of groups) {
    const view = views.get(environmentId);
    if (view === undefined) continue;
    const listed = environments.get(projectId) ?? [];
    environments.set(projectId, [...listed, { ...view, project_id: Number(projectId) }]);
  }
  return environments;
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

/** Returns the oldest job of each project or environment, by its id; one without jobs is missing. */
async function oldestJobOfEach(
  prisma: PrismaClient,
  accountId: number,
  column: 'projectId' | 'environmentId',
  rows: readonly NamedRow[],
): Promise<Map<bigint, OldestJob>> {
  const jobs = await oldestJobs(prisma, accountId, { [column]: { in: rows.map(({ id }) => id) } });
  const oldest = new Map<bigint, OldestJob>();
  for (const job of jobs) {
    const found = oldest.get(job[column]);
    if (found === undefined || job.id < found.id) oldest.set(job[column], job);
  }
  return oldest;
}
