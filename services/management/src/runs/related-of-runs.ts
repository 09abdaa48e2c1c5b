import type { PrismaClient } from '@runhook/database/prisma';
import { environmentsOfRuns, jobsOfRuns } from '../jobs/jobs-of-runs.ts';
import type { RelatedOfRun, RunRelatedName } from './run-response.ts';
import type { RunView } from './run-view.ts';

/**
 * Returns the related objects of each run but its steps, in input order. The trigger is a part of each run, and no run
 * has a repository.
 */
export async function relatedOfRuns(
  prisma: PrismaClient,
  accountId: number,
  runs: readonly RunView[],
  names: ReadonlySet<RunRelatedName>,
): Promise<RelatedOfRun[]> {
  const jobOf = names.has('job') ? await jobsOfRuns(prisma, accountId, runs) : null;
  const environments = names.has('environment') ? await environmentsOfRuns(prisma, accountId, runs) : null;
  return runs.map((run) => ({
    ...(jobOf && { job: jobOf(run) }),
    ...(environments && { environment: environments.get(run.environment_id) ?? null }),
    ...(names.has('repository') && { repository: null }),
  }));
}
