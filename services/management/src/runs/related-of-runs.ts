import { jobView } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import { environmentViews } from '../jobs/projects.ts';
import type { RelatedOfRun, RunRelatedName } from './run-response.ts';
import type { RunView } from './run-view.ts';

/**
 * Returns the related objects of each run, in input order. The trigger is a part of each run, and no run has a
 * repository.
 */
export async function relatedOfRuns(
  prisma: PrismaClient,
  accountId: number,
  runs: readonly RunView[],
  names: ReadonlySet<RunRelatedName>,
): Promise<RelatedOfRun[]> {
  const jobs = names.has('job') ? await jobsById(prisma, accountId, runs) : null;
  const environments = names.has('environment') ? await environmentsById(prisma, accountId, runs) : null;
  return runs.map((run) => ({
    ...(jobs && { job: jobs.get(run.job_id) ?? jobOfRun(run) }),
    ...(environments && { environment: environments.get(run.environment_id) ?? null }),
    ...(names.has('repository') && { repository: null }),
    ...((names.has('run_steps') || names.has('debug_logs')) && { run_steps: [] }),
  }));
}

async function jobsById(prisma: PrismaClient, accountId: number, runs: readonly RunView[]) {
  const ids = [...new Set(runs.map(({ job_id }) => job_id))].map(BigInt);
  const rows = await prisma.job.findMany({
    where: { accountId: BigInt(accountId), id: { in: ids } },
    include: { project: true, environment: true },
  });
  return new Map(rows.map((row) => [Number(row.id), jobView(row)]));
}

/** Publishers report runs of jobs that are not on record. */
function jobOfRun(run: RunView) {
  return {
    id: run.job_id,
    account_id: run.account_id,
    name: run.job_name,
    project_id: run.project_id,
    project_name: run.project_name,
    environment_id: run.environment_id,
    environment_name: run.environment_name,
  };
}

async function environmentsById(prisma: PrismaClient, accountId: number, runs: readonly RunView[]) {
  const ids = [...new Set(runs.map(({ environment_id }) => environment_id))].map(BigInt);
  const account = BigInt(accountId);
  const where = { accountId: account, id: { in: ids }, jobs: { some: { accountId: account } } };
  const rows = await prisma.environment.findMany({ where });
  const views = await environmentViews(prisma, accountId, rows, null);
  return new Map(views.map((view) => [view.id, view]));
}
