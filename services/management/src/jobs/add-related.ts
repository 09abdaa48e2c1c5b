import type { PrismaClient } from '@runhook/database/prisma';
import type { BaseUrl } from '../http/base-url.ts';
import type { AccountRequest } from '../http/endpoint.ts';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { findRecentRuns } from '../runs/recent-runs.ts';
import { type RunResponse, runResponse } from '../runs/run-response.ts';
import { type JobResponse, type JobRow, jobResponse } from './job-response.ts';
import {
  type EnvironmentView,
  environmentViews,
  type ProjectView,
  projectViews,
} from './project-response.ts';

/** Names that `include_related` of a job accepts. */
export const JOB_RELATED = [
  'project',
  'environment',
  'most_recent_run',
  'most_recent_completed_run',
] as const;

export type JobRelatedName = (typeof JOB_RELATED)[number];

/** A job with the objects that `include_related` requests; one that does not exist is null. */
export interface JobWithRelated extends JobResponse {
  project?: ProjectView | null;
  environment?: EnvironmentView | null;
  most_recent_run?: RunResponse | null;
  most_recent_completed_run?: RunResponse | null;
}

/** Returns the representations of jobs in input order, with the requested objects. */
export async function addRelated(
  { prisma, reads, baseUrl }: { prisma: PrismaClient; reads: ReplicaReads; baseUrl: BaseUrl },
  request: AccountRequest,
  rows: readonly JobRow[],
  related: ReadonlySet<JobRelatedName> | null,
): Promise<JobWithRelated[]> {
  const accountId = request.account.id;
  const has = (name: JobRelatedName) => related?.has(name) ?? false;
  const [projects, environments] = await Promise.all([
    has('project')
      ? projectViews(
          prisma,
          accountId,
          rows.map(({ project }) => project),
        )
      : null,
    has('environment')
      ? environmentViews(
          prisma,
          accountId,
          rows.map(({ environment }) => environment),
        )
      : null,
  ]);
  const recentRuns = async (isCompleted: boolean) => {
    const jobIds = rows.map(({ id }) => Number(id));
    const runs = await findRecentRuns(reads.databaseFor(request), accountId, jobIds, { isCompleted });
    const url = baseUrl(request);
    return new Map(runs.map((run) => [BigInt(run.job_id), runResponse(run, { baseUrl: url })]));
  };
  // One after the other: each may read many runs.
  const latest = has('most_recent_run') ? await recentRuns(false) : null;
  const completed = has('most_recent_completed_run') ? await recentRuns(true) : null;
  return rows.map((row) => {
    const environment = environments?.get(row.environmentId);
    return {
      ...jobResponse(row),
      ...(projects && { project: projects.get(row.projectId) ?? null }),
      ...(environments && {
        environment: environment ? { ...environment, project_id: Number(row.projectId) } : null,
      }),
      ...(latest && { most_recent_run: latest.get(row.id) ?? null }),
      ...(completed && { most_recent_completed_run: completed.get(row.id) ?? null }),
    };
  });
}
