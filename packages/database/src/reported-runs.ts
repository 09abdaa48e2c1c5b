import { EVENT_TYPE_TABLE, type JobRunEvent, type RunStatus, reportedStatus } from '@runhook/contract';
import { type UnnestColumns, unnestSql, unnestValues } from './unnest.ts';

/** State of a run that its events report, for the table `runs`. */
interface ReportedRun {
  accountId: number;
  id: string;
  jobId: string;
  jobName: string;
  projectId: string;
  projectName: string;
  environmentId: string;
  environmentName: string;
  engineVersion: string;
  status: RunStatus;
  statusMessage: string | null;
  reason: string | null;
  startedAt: string;
  finishedAt: string | null;
  erroredAt: string | null;
  artifactsIngestedAt: string | null;
  /** Whether one of the events reports that the run started. */
  startReported: boolean;
}

const RUN_COLUMNS: UnnestColumns<ReportedRun> = {
  account_id: ['bigint', ({ accountId }) => accountId],
  id: ['bigint', ({ id }) => id],
  job_id: ['bigint', ({ jobId }) => jobId],
  job_name: ['text', ({ jobName }) => jobName],
  project_id: ['bigint', ({ projectId }) => projectId],
  project_name: ['text', ({ projectName }) => projectName],
  environment_id: ['bigint', ({ environmentId }) => environmentId],
  environment_name: ['text', ({ environmentName }) => environmentName],
  engine_version: ['text', ({ engineVersion }) => engineVersion],
  status: ['text', ({ status }) => status],
  status_message: ['text', ({ statusMessage }) => statusMessage],
  reason: ['text', ({ reason }) => reason],
  started_at: ['timestamptz', ({ startedAt }) => startedAt],
  finished_at: ['timestamptz', ({ finishedAt }) => finishedAt],
  errored_at: ['timestamptz', ({ erroredAt }) => erroredAt],
  artifacts_ingested_at: ['timestamptz', ({ artifactsIngestedAt }) => artifactsIngestedAt],
  start_reported: ['boolean', ({ startReported }) => startReported],
};
const IN_PROGRESS = `r.status IN ('Queued', 'Starting', 'Running')`;
const RUN_COLUMN_NAMES = Object.keys(RUN_COLUMNS).join(', ');

/**
 * Returns SQL for a part of a statement that commits events: records the state of their runs. Its parameters are
 * {@link upsertRunsValues}.
 * @param firstParameter number of the first of these parameters
 * @param recorded query of the account and the run of each event that is new
 */
export function upsertRunsSql(firstParameter: number, recorded: string): string {
  return `
    INSERT INTO runs AS r (${RUN_COLUMN_NAMES})
    SELECT ${RUN_COLUMN_NAMES} FROM ${unnestSql(RUN_COLUMNS, firstParameter, 'input')}
    WHERE (input.account_id, input.id) IN (${recorded})
    ON CONFLICT (account_id, id) DO UPDATE
      SET status = CASE WHEN ${IN_PROGRESS} THEN EXCLUDED.status ELSE r.status END,
          status_message = CASE WHEN ${IN_PROGRESS} THEN EXCLUDED.status_message ELSE r.status_message END,
          engine_version = coalesce(r.engine_version, EXCLUDED.engine_version),
          started_at = coalesce(r.started_at, EXCLUDED.started_at),
          finished_at = coalesce(r.finished_at, EXCLUDED.finished_at),
          errored_at = coalesce(r.errored_at, EXCLUDED.errored_at),
          artifacts_ingested_at = coalesce(r.artifacts_ingested_at, EXCLUDED.artifacts_ingested_at),
          start_reported = r.start_reported OR EXCLUDED.start_reported
      WHERE r.job_id = EXCLUDED.job_id
        AND ((${IN_PROGRESS} AND EXCLUDED.status <> r.status)
          OR (r.started_at IS NULL AND EXCLUDED.started_at IS NOT NULL)
          OR (r.finished_at IS NULL AND EXCLUDED.finished_at IS NOT NULL)
          OR (r.errored_at IS NULL AND EXCLUDED.errored_at IS NOT NULL)
          OR (r.artifacts_ingested_at IS NULL AND EXCLUDED.artifacts_ingested_at IS NOT NULL)
          OR (EXCLUDED.start_reported AND NOT r.start_reported))`;
}

/** Returns the parameters of {@link upsertRunsSql}. */
export function upsertRunsValues(events: readonly JobRunEvent[]): unknown[][] {
  return unnestValues(RUN_COLUMNS, toReportedRuns(events));
}

/** Combines the events of each run in any order: a final status replaces `Running`, and a time that is set stays. */
function toReportedRuns(events: readonly JobRunEvent[]): ReportedRun[] {
  const runs = new Map<string, ReportedRun>();
  for (const event of events) {
    const key = `${event.accountId}/${event.data.runId}`;
    const existing = runs.get(key);
    runs.set(key, existing ? mergeRuns(existing, toReportedRun(event)) : toReportedRun(event));
  }
  // Sorted, so that two processes that update the same runs lock them in the same order and cannot deadlock.
  return [...runs.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, run]) => run);
}

function toReportedRun(event: JobRunEvent): ReportedRun {
  const { data } = event;
  const { afterArtifacts, statuses } = EVENT_TYPE_TABLE[event.eventType];
  return {
    accountId: event.accountId,
    id: data.runId,
    jobId: data.jobId,
    jobName: data.jobName,
    projectId: data.projectId,
    projectName: data.projectName,
    environmentId: data.environmentId,
    environmentName: data.environmentName,
    engineVersion: data.engineVersion,
    status: reportedStatus(event),
    statusMessage: nullIfNone(data.runStatusMessage),
    reason: nullIfNone(data.runReason),
    startedAt: data.runStartedAt,
    finishedAt: 'runFinishedAt' in data ? data.runFinishedAt : null,
    erroredAt: 'runErroredAt' in data ? data.runErroredAt : null,
    artifactsIngestedAt: afterArtifacts ? event.timestamp.replace(/\.\d+Z$/, 'Z') : null,
    startReported: statuses[0] === 'Running',
  };
}

function mergeRuns(a: ReportedRun, b: ReportedRun): ReportedRun {
  const later = a.status === 'Running' ? b : a;
  return {
    ...later,
    finishedAt: a.finishedAt ?? b.finishedAt,
    erroredAt: a.erroredAt ?? b.erroredAt,
    artifactsIngestedAt: a.artifactsIngestedAt ?? b.artifactsIngestedAt,
    startReported: a.startReported || b.startReported,
  };
}

/** Returns null for "" and for "None", which stands for an absent text in payloads (docs/contract.md#events). */
function nullIfNone(text: string): string | null {
  return text === '' || text === 'None' ? null : text;
}
