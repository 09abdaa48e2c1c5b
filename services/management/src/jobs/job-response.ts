import { microsecondTimestamp } from '@runhook/contract';
import { type JobView, jobView } from '@runhook/database';
import type { Prisma } from '@runhook/database/prisma';
import { definitionOf, type JobDefinition } from './definition.ts';
import type { NamedRow } from './project-response.ts';

/** Columns and rows that {@link jobResponse} needs. */
export const JOB_ROWS = { project: true, environment: true } as const satisfies Prisma.JobInclude;

export type JobRow = Prisma.JobModel & { project: NamedRow; environment: NamedRow };

/** A job in responses (docs/contract.md#jobs). Times are ISO 8601 UTC with microseconds and `Z`. */
export interface JobResponse extends JobView, JobDefinition {
  /** 2: deleted, as the job of an old run. */
  state: 1 | 2;
  created_at: string;
  updated_at: string;
  /** The same as `run_generate_sources`. */
  generate_sources: boolean;
  raw_dbt_version: null;
  is_deferrable: false;
  deactivated: false;
  is_system: false;
}

/** Returns the representation of a job, the same in every response of the API. */
export function jobResponse(row: JobRow): JobResponse {
  const created = microsecondTimestamp(row.createdAt);
  return {
    ...jobView(row),
    ...definedFields(row.definition),
    state: row.deletedAt === null ? 1 : 2,
    created_at: created,
    updated_at: row.updatedAt === null ? created : microsecondTimestamp(row.updatedAt),
  };
}

/** A run of a job that is not on record, with the columns that every run has. */
export interface RunOfJob {
  account_id: number;
  job_id: number;
  job_name: string;
  project_id: number;
  project_name: string;
  environment_id: number;
  environment_name: string;
  created_at: string;
}

/** Returns the job of a run as far as the run tells: publishers report runs of jobs that are not on record. */
export function jobOfRun(run: RunOfJob): JobResponse {
  return {
    id: run.job_id,
    account_id: run.account_id,
    name: run.job_name,
    project_id: run.project_id,
    project_name: run.project_name,
    environment_id: run.environment_id,
    environment_name: run.environment_name,
    ...definedFields(null),
    state: 1,
    created_at: run.created_at,
    updated_at: run.created_at,
  };
}

function definedFields(stored: Prisma.JsonValue) {
  const definition = definitionOf(stored);
  return {
    ...definition,
    generate_sources: definition.run_generate_sources,
    raw_dbt_version: null,
    is_deferrable: false,
    deactivated: false,
    is_system: false,
  } as const;
}
