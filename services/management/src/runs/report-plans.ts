import { isFinalRunStatus, microsecondTimestamp } from '@runhook/contract';
import type { JobView } from '@runhook/database';
import type { JobAtVersion } from './job-cache.ts';
import { keyOf } from './report-reads.ts';
import type { RunWrite } from './report-statements.ts';
import type { RunStart } from './routes.ts';
import type { RunView } from './run-view.ts';
import {
  isUnstarted,
  type RunCall,
  type RunConflict,
  type RunState,
  runEvent,
  transitionRun,
} from './transitions.ts';

/** A job runner's report of one run. */
export interface Report {
  accountId: number;
  /** Value of `cache_version` at which the caller was read; null for a console session, which is never cached. */
  version: string | null;
  arrivedAtMs: number;
  /** Trace of the call; null unless traces are exported. */
  traceContext: string | null;
  content: { call: 'start'; fields: RunStart } | Change;
  /** Called before the commit, perhaps more than once. An error that it throws becomes the result of the report. */
  beforeCommit(): void;
}

/** A report that changes an existing run. */
interface Change {
  call: Exclude<RunCall['call'], 'start' | 'trigger'>;
  runId: number;
  transition: RunCall;
  /** Returns the fields, other than the status, that the report sets on a run that it changes. */
  details: (arrivedAt: string) => Partial<RunView>;
}

/** Result of a report. After `outdated` and `locked` the report is processed again. */
export type ReportOutcome =
  /** `unchanged`: a report that the run already has. */
  | { kind: 'started' | 'existing' | 'recorded' | 'unchanged'; run: RunView }
  | { kind: 'unknown_job' | 'not_found' }
  | RunConflict
  /** The cached caller may be outdated. */
  | { kind: 'outdated' }
  /** Another transaction has locked the run, and the other reports of the batch must not wait for it. */
  | { kind: 'locked' };

/** A pending report with its index in the batch. */
export interface PendingReport {
  report: Report;
  index: number;
  /** Client-supplied id of the run, or one that was drawn for it. */
  runId: number;
  /** Whether a run with this id exists, so that it must be read before the start is planned. */
  isIdTaken: boolean;
}

export interface PlannedWrite {
  pending: PendingReport;
  write: RunWrite;
}

export type PlannedReport =
  | (PlannedWrite & { outcome?: never })
  | { pending: PendingReport; outcome: ReportOutcome; write?: never };

export function runKey({ report: { accountId }, runId }: PendingReport): string {
  return keyOf({ accountId, id: runId });
}

/** Returns the client-supplied id of the run; undefined for a start without one. */
export function clientRunId(content: Report['content']): number | undefined {
  return content.call === 'start' ? content.fields.run_id : content.runId;
}

/** Plans the start of a new run: its first state and the events that follow from it. */
export function planStart(pending: PendingReport, { cacheVersion, job }: JobAtVersion): PlannedReport {
  const { report, runId } = pending;
  if (isOutdated(report, cacheVersion)) return { pending, outcome: { kind: 'outdated' } };
  if (job === null) return { pending, outcome: { kind: 'unknown_job' } };
  const run = newRun(job, runId, report);
  const transition = transitionRun(null, { call: 'start' });
  const eventTypes = transition.kind === 'changed' ? transition.events : [];
  const events = eventTypes.map((eventType) => runEvent(eventType, run, report.arrivedAtMs));
  const { traceContext } = report;
  return { pending, write: { run, expected: null, version: cacheVersion, events, traceContext } };
}

/** Plans a change of a run, or a start whose id is taken. @param run as it was read; undefined if it does not exist */
export function planWithRun(
  pending: PendingReport,
  run: RunView | undefined,
  version: string,
): PlannedReport {
  const { report } = pending;
  const { content } = report;
  if (isOutdated(report, version)) return { pending, outcome: { kind: 'outdated' } };
  if (content.call === 'start') return planStartOfExisting(pending, content.fields, run, version);
  if (run === undefined) return { pending, outcome: { kind: 'not_found' } };
  return planChange(pending, content, run, version);
}

/** Plans a start whose id is taken: it starts a triggered run; otherwise it repeats a start. */
function planStartOfExisting(
  pending: PendingReport,
  fields: RunStart,
  run: RunView | undefined,
  version: string,
): PlannedReport {
  const outcome = existingRunOutcome(run, fields);
  if (run === undefined || outcome.kind !== 'existing' || !isUnstarted(run.status))
    return { pending, outcome };
  return planChange(pending, beginChange(run.id, { call: 'start' }, fields), run, version);
}

/** Returns the change that starts a triggered run. */
export function beginChange(
  runId: number,
  transition: RunCall,
  fields: Pick<RunStart, 'engine_version' | 'started_at'>,
): Change {
  const { engine_version, started_at } = fields;
  const details = (arrivedAt: string) => ({ engine_version, started_at: started_at ?? arrivedAt });
  return { call: 'begin', runId, transition, details };
}

function planChange(pending: PendingReport, content: Change, run: RunView, version: string): PlannedReport {
  const { arrivedAtMs, traceContext } = pending.report;
  const transition = transitionRun(stateOf(run), content.transition);
  if (transition.kind === 'conflict') return { pending, outcome: transition };
  if (transition.kind === 'unchanged') return { pending, outcome: { kind: 'unchanged', run } };
  const changed = applyChange(
    run,
    transition.state,
    content.details(microsecondTimestamp(new Date(arrivedAtMs))),
  );
  const events = transition.events.map((eventType) => runEvent(eventType, changed, arrivedAtMs));
  return { pending, write: { run: changed, expected: stateOf(run), version, events, traceContext } };
}

/** Sets only the missing fields of a run that has already ended: the first report of its end is kept. */
function applyChange(run: RunView, { status, hasFinishTime }: RunState, details: Partial<RunView>): RunView {
  const changes = isFinalRunStatus(run.status) ? missingFields(run, details) : details;
  const changed = { ...run, ...changes, status };
  return hasFinishTime ? { ...changed, finished_at: changed.finished_at ?? changed.errored_at } : changed;
}

function missingFields(run: RunView, details: Partial<RunView>): Partial<RunView> {
  return Object.fromEntries(
    Object.entries(details).filter(([field]) => run[field as keyof RunView] === null),
  );
}

/** Returns the outcome of a start whose id is taken: the same start repeated, or a conflict with another job's run. */
function existingRunOutcome(run: RunView | undefined, fields: RunStart): ReportOutcome {
  if (!run) throw new Error(`run ${fields.run_id} could neither be inserted nor found`);
  if (run.job_id === fields.job_id) return { kind: 'existing', run };
  return { kind: 'conflict', message: `Run ${run.id} belongs to another job.`, hasEnded: false };
}

function newRun(job: JobView, id: number, { content, arrivedAtMs }: Report): RunView {
  if (content.call !== 'start') throw new TypeError('only a start makes a run');
  const { fields } = content;
  const arrivedAt = microsecondTimestamp(new Date(arrivedAtMs));
  return {
    id,
    account_id: job.account_id,
    job_id: job.id,
    job_name: job.name,
    project_id: job.project_id,
    project_name: job.project_name,
    environment_id: job.environment_id,
    environment_name: job.environment_name,
    engine_version: fields.engine_version,
    status: 'Running',
    status_message: null,
    reason: fields.reason ?? null,
    // Replaced with the time on record when the run is written.
    created_at: arrivedAt,
    started_at: fields.started_at ?? arrivedAt,
    finished_at: null,
    errored_at: null,
    artifacts_ingested_at: null,
    trigger: null,
    retry_of: null,
  };
}

function isOutdated({ version }: Report, currentVersion: string): boolean {
  return version !== null && version !== currentVersion;
}

function stateOf(run: RunView): RunState {
  return {
    status: run.status,
    hasFinishTime: run.finished_at !== null,
    hasArtifacts: run.artifacts_ingested_at !== null,
  };
}
