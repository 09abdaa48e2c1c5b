import type { Prisma, PrismaClient } from './generated/client.ts';
import { inPrismaTransaction } from './prisma-transaction.ts';

/** A job as the runs API returns it; ids are integers (docs/contract.md#runs-and-jobs). */
export interface JobView {
  id: number;
  account_id: number;
  name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
}

export interface NewJob {
  accountId: number;
  name: string;
  projectName: string;
  environmentName: string;
}

export async function createJob(prisma: PrismaClient, job: NewJob): Promise<JobView> {
  return await inPrismaTransaction(prisma, (transaction) => insertJob(transaction, job));
}

/** Creates a job, and its project and environment if the account has none with that name. */
async function insertJob(transaction: Prisma.TransactionClient, job: NewJob): Promise<JobView> {
  const accountId = BigInt(job.accountId);
  const project = await findOrCreateProject(transaction, accountId, job.projectName);
  const environment = await findOrCreateEnvironment(transaction, accountId, job.environmentName);
  const created = await transaction.job.create({
    data: { accountId, name: job.name, projectId: project.id, environmentId: environment.id },
  });
  return jobView({ ...created, project, environment });
}

export async function findOrCreateProject(
  transaction: Prisma.TransactionClient,
  accountId: bigint,
  name: string,
): Promise<Prisma.ProjectModel> {
  const upsert = upsertArguments(accountId, name);
  const found = await transaction.project.findUnique({ where: upsert.where });
  return found ?? (await transaction.project.upsert(upsert));
}

export async function findOrCreateEnvironment(
  transaction: Prisma.TransactionClient,
  accountId: bigint,
  name: string,
): Promise<Prisma.EnvironmentModel> {
  const upsert = upsertArguments(accountId, name);
  const found = await transaction.environment.findUnique({ where: upsert.where });
  return found ?? (await transaction.environment.upsert(upsert));
}

/**
 * Prisma makes an upsert one atomic statement only if `update` is not empty; otherwise it selects, then inserts. The
 * upsert locks the row and makes concurrent inserts of jobs wait, so it runs only when no row was found.
 */
function upsertArguments(accountId: bigint, name: string) {
  return {
    where: { accountId_name: { accountId, name } },
    create: { accountId, name },
    update: { name },
  };
}

export function jobView(row: {
  id: bigint;
  accountId: bigint;
  name: string;
  project: { id: bigint; name: string };
  environment: { id: bigint; name: string };
}): JobView {
  return {
    id: Number(row.id),
    account_id: Number(row.accountId),
    name: row.name,
    project_id: Number(row.project.id),
    project_name: row.project.name,
    environment_id: Number(row.environment.id),
    environment_name: row.environment.name,
  };
}
