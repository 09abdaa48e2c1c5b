// SQL by hand: locks a row that may not change.
import { isDeepStrictEqual } from 'node:util';
import { findOrCreateEnvironment, findOrCreateProject } from '@runhook/database';
import { Prisma } from '@runhook/database/prisma';
import { ConflictError, InvalidRequestError, NotFoundError } from '../http/errors.ts';
import { mergeDefinition, newDefinition, type StoredDefinition } from './definition.ts';
import type { JobRequest, ParentReference } from './job-request.ts';
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
  const parents = await findParents(transaction, accountId, { project, environment }, null);
  const created = await transaction.job.create({
    data: {
      accountId,
      name,
      projectId: parents.project.id,
      environmentId: parents.environment.id,
      definition: toJson(newDefinition(definition)),
    },
  });
  return { ...created, ...parents };
}

/** Replaces the fields that the request has; changes nothing if the job has their values. Throws a 404 for an unknown or deleted job. */
export async function updateJob(
  transaction: Transaction,
  key: JobKey,
  { name, project, environment, definition, isDeleted }: JobRequest,
): Promise<JobRow> {
  const { accountId, id } = key;
  // Locks the job, so that a concurrent change of other fields is not lost.
  const locked = await transaction.$queryRaw<unknown[]>`
    SELECT id FROM jobs WHERE account_id = ${accountId} AND id = ${id} AND deleted_at IS NULL FOR UPDATE`;
  if (locked.length === 0) throw new NotFoundError();
  const stored = await transaction.job.findUniqueOrThrow({ where: { id }, include: JOB_ROWS });
  const parents = await findParents(transaction, accountId, { project, environment }, stored);
  const merged = mergeDefinition(stored.definition, definition);
  // Names and ids only if they differ: each change of these makes all processes read their cached callers again.
  const changes = {
    ...(name !== undefined && name !== stored.name && { name }),
    ...(parents.project.id !== stored.projectId && { projectId: parents.project.id }),
    ...(parents.environment.id !== stored.environmentId && { environmentId: parents.environment.id }),
    ...(!isDeepStrictEqual(merged, stored.definition) && { definition: toJson(merged) }),
    ...(isDeleted && { deletedAt: new Date() }),
  };
  if (Object.keys(changes).length === 0) return stored;
  const data = { ...changes, updatedAt: new Date() };
  return await transaction.job.update({ where: { id }, data, include: JOB_ROWS });
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

const toJson = (definition: StoredDefinition | null) =>
  definition === null ? Prisma.DbNull : (definition as Prisma.InputJsonObject);

async function findParents(
  transaction: Transaction,
  accountId: bigint,
  { project, environment }: Pick<JobRequest, 'project' | 'environment'>,
  current: JobRow | null,
): Promise<Pick<JobRow, 'project' | 'environment'>> {
  const projectRow = await findParent('project', project, current?.project ?? null, {
    withId: (id) => transaction.project.findFirst({ where: { accountId, id } }),
    withName: (name) => findOrCreateProject(transaction, accountId, name),
  });
  const environmentRow = await findParent('environment', environment, current?.environment ?? null, {
    withId: (id) => transaction.environment.findFirst({ where: { accountId, id } }),
    withName: (name) => findOrCreateEnvironment(transaction, accountId, name),
  });
  return { project: projectRow, environment: environmentRow };
}

/**
 * Returns the project or environment of a request. A change of the id counts, else one of the name: a client that changes
 * one of them in the response of a GET sends the other one back unchanged.
 */
async function findParent(
  kind: 'project' | 'environment',
  { id, name }: ParentReference,
  current: NamedRow | null,
  find: { withId(id: bigint): Promise<NamedRow | null>; withName(name: string): Promise<NamedRow> },
): Promise<NamedRow> {
  const isNameNew = name !== undefined && name !== current?.name;
  if (id !== undefined && BigInt(id) !== current?.id) {
    const found = await find.withId(BigInt(id));
    if (found === null) throw invalid(`${kind}_id`, `${id} is not ${ARTICLE[kind]} of this account`);
    if (isNameNew && name !== found.name)
      throw invalid(`${kind}_name`, `is not the name of ${kind} ${id}; send one of the two`);
    return found;
  }
  if (isNameNew) return await find.withName(name);
  if (current === null) throw new TypeError(`a job without ${kind}`);
  return current;
}

const ARTICLE = { project: 'a project', environment: 'an environment' } as const;

const invalid = (field: string, problem: string) =>
  new InvalidRequestError([{ field, message: `${field} ${problem}` }]);
