import { Prisma, type PrismaClient } from './generated/client.ts';

/** A job as the runs API answers it; ids are integers (docs/contract.md#runs-and-jobs). */
export interface JobView {
  id: number;
  account_id: number;
  name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
}

/** Creates a job, and its project and environment where the account has none of that name. */
export async function createJob(
  prisma: PrismaClient,
  job: { accountId: number; name: string; projectName: string; environmentName: string },
): Promise<JobView> {
  const accountId = BigInt(job.accountId);
  return await prisma.$transaction(async (transaction) => {
    const project = await findOrCreate(transaction, 'projects', accountId, job.projectName);
    const environment = await findOrCreate(transaction, 'environments', accountId, job.environmentName);
    const created = await transaction.job.create({
      data: { accountId, name: job.name, projectId: project.id, environmentId: environment.id },
    });
    return jobView({ ...created, project, environment });
  });
}

const FIND_OR_CREATE = {
  projects: Prisma.sql`INSERT INTO projects (account_id, name)`,
  environments: Prisma.sql`INSERT INTO environments (account_id, name)`,
};

/** One atomic statement: Prisma's upsert looks first and inserts then, and two at a time would collide. */
async function findOrCreate(
  transaction: Prisma.TransactionClient,
  table: keyof typeof FIND_OR_CREATE,
  accountId: bigint,
  name: string,
): Promise<{ id: bigint; name: string }> {
  const rows = await transaction.$queryRaw<{ id: bigint }[]>`
    ${FIND_OR_CREATE[table]} VALUES (${accountId}, ${name})
    ON CONFLICT (account_id, name) DO UPDATE SET name = EXCLUDED.name
    RETURNING id`;
  const [row] = rows;
  if (!row) throw new Error(`no row of ${table} came back`);
  return { id: row.id, name };
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
