import { findOrCreateEnvironment, findOrCreateProject } from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { mergeDefinition } from './definition.ts';
import type { JobRequest, PlaceReference } from './job-request.ts';
import { JOB_ROWS, type JobRow } from './job-response.ts';
import type { NamedRow } from './project-response.ts';

type Transaction = Prisma.TransactionClient;

/** Creates a job. Throws a 400 that names an unknown project or environment, or a 409 beyond `jobsMax`. */
export async function insertJob(
  transaction: Transaction,
  accountId: bigint,
  { name = '', project, environment, definition }: JobRequest,
  jobsMax: number,
): Promise<JobRow> {
  // Concurrent calls do not see each other and may exceed the limit by a few.
  if ((await transaction.job.count({ where: { accountId, deletedAt: null } })) >= jobsMax)
    throw new ConflictError(`The account has ${jobsMax} jobs, the maximum.`);
  const places = await findPlaces(transaction, accountId, { project, environment }, null);
  const stored = mergeDefinition(null, definition);
  const created = await transaction.job.create({
    data: {
      accountId,
      name,
      projectId: places.project.id,
      environmentId: places.environment.id,
      ...(Object.keys(stored).length > 0 && { definition: toJson(stored) }),
    },
  });
  return { ...created, ...places };
}

/** Replaces the fields that the request has. Throws a 404 for an unknown or deleted job. */
export async function updateJob(
  transaction: Transaction,
  key: JobKey,
  { name, project, environment, definition, isDeleted }: JobRequest,
): Promise<JobRow> {
  const { accountId, id } = key;
  // Locks the job, so that a concurrent change of other fields is not lost.
  const { count } = await transaction.job.updateMany({
    where: { ...key, deletedAt: null },
    data: { updatedAt: new Date() },
  });
  if (count === 0) throw new NotFoundError();
  const stored = await transaction.job.findUniqueOrThrow({ where: { id }, include: JOB_ROWS });
  const places = await findPlaces(transaction, accountId, { project, environment }, stored);
  // Names and ids only if they differ: each change of these makes all processes read their cached callers again.
  return await transaction.job.update({
    where: { id },
    data: {
      ...(name !== undefined && name !== stored.name && { name }),
      ...(places.project.id !== stored.projectId && { projectId: places.project.id }),
      ...(places.environment.id !== stored.environmentId && { environmentId: places.environment.id }),
      ...(Object.keys(definition).length > 0 && {
        definition: toJson(mergeDefinition(stored.definition, definition)),
      }),
      ...(isDeleted && { deletedAt: new Date() }),
    },
    include: JOB_ROWS,
  });
}

/** Hides the job; its runs keep it. Throws a 404 for an unknown or deleted job. */
export async function hideJob(transaction: Transaction, key: JobKey): Promise<JobRow> {
  const now = new Date();
  const { count } = await transaction.job.updateMany({
    where: { ...key, deletedAt: null },
    data: { deletedAt: now, updatedAt: now },
  });
  if (count === 0) throw new NotFoundError();
  return await transaction.job.findUniqueOrThrow({ where: { id: key.id }, include: JOB_ROWS });
}

export interface JobKey {
  accountId: bigint;
  id: bigint;
}

/** A webhook that lists a job. */
export interface WebhookOfJob {
  id: string;
  name: string;
}

/** Returns the webhooks that list the job, but not those of all jobs. */
export async function webhooksOf(
  transaction: Transaction,
  { accountId, id }: JobKey,
): Promise<WebhookOfJob[]> {
  return await transaction.subscription.findMany({
    where: { accountId, deletedAt: null, jobIds: { has: id } },
    select: { id: true, name: true },
    orderBy: { id: 'asc' },
  });
}

const toJson = (definition: object) => definition as Prisma.InputJsonObject;

async function findPlaces(
  transaction: Transaction,
  accountId: bigint,
  { project, environment }: Pick<JobRequest, 'project' | 'environment'>,
  current: JobRow | null,
): Promise<Pick<JobRow, 'project' | 'environment'>> {
  const projectRow = await findPlace('project', project, current?.project ?? null, {
    byId: (id) => transaction.project.findFirst({ where: { accountId, id } }),
    byName: (name) => findOrCreateProject(transaction, accountId, name),
  });
  const environmentRow = await findPlace('environment', environment, current?.environment ?? null, {
    byId: (id) => transaction.environment.findFirst({ where: { accountId, id } }),
    byName: (name) => findOrCreateEnvironment(transaction, accountId, name),
  });
  return { project: projectRow, environment: environmentRow };
}

/**
 * Returns the project or environment of a request. A change of the id counts, else one of the name: a client that changes
 * one of them in the response of a GET sends the other one back unchanged.
 */
async function findPlace(
  kind: 'project' | 'environment',
  { id, name }: PlaceReference,
  current: NamedRow | null,
  find: { byId(id: bigint): Promise<NamedRow | null>; byName(name: string): Promise<NamedRow> },
): Promise<NamedRow> {
  const isNameNew = name !== undefined && name !== current?.name;
  if (id !== undefined && BigInt(id) !== current?.id) {
    const found = await find.byId(BigInt(id));
    if (found === null) throw invalid(`${kind}_id`, `${id} is not ${ARTICLE[kind]} of this account`);
    if (isNameNew && name !== found.name)
      throw invalid(`${kind}_name`, `is not the name of ${kind} ${id}; send one of the two`);
    return found;
  }
  if (isNameNew) return await find.byName(name);
  if (current === null) throw new TypeError(`a job without ${kind}`);
  return current;
}

const ARTICLE = { project: 'a project', environment: 'an environment' } as const;

const invalid = (field: string, problem: string) =>
  new InvalidRequestError([{ field, message: `${field} ${problem}` }]);
