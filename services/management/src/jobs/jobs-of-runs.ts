/** The objects of runs that `include_related` of a run requests: jobs and environments. */
import type { PrismaClient } from '@runhook/database/prisma';
import { JOB_ROWS, type JobResponse, jobOfRun, jobResponse, type RunOfJob } from './job-response.ts';
import { type EnvironmentView, environmentViews } from './project-response.ts';

/** Returns a function that returns the job of a run; one that is not on record is made of the run. */
export async function jobsOfRuns(
  prisma: PrismaClient,
  accountId: number,
  runs: readonly RunOfJob[],
): Promise<(run: RunOfJob) => JobResponse> {
  const ids = [...new Set(runs.map((run) => run.job_id))].map(BigInt);
  const rows = await prisma.job.findMany({
    where: { accountId: BigInt(accountId), id: { in: ids } },
    include: JOB_ROWS,
  });
  const jobs = new Map(rows.map((row) => [Number(row.id), jobResponse(row)]));
  return (run) => jobs.get(run.job_id) ?? jobOfRun(run);
}

/** Returns the environments of runs by id; those that are not on record are missing. */
export async function environmentsOfRuns(
  prisma: PrismaClient,
  accountId: number,
  runs: readonly RunOfJob[],
): Promise<Map<number, EnvironmentView>> {
  const rows = await prisma.environment.findMany({
    where: {
      accountId: BigInt(accountId),
      id: { in: [...new Set(runs.map((run) => run.environment_id))].map(BigInt) },
    },
  });
  const views = await environmentViews(prisma, accountId, rows);
  return new Map([...views].map(([id, view]) => [Number(id), view]));
}
