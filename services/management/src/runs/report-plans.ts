import { RUN_STATUS_CODES, secondsTimestamp } from '@runhook/contract';
import type { JobView } from '@runhook/database';
import type { JobAtVersion } from './remembered.ts';
import { keyOf, type RunWrite } from './report-statements.ts';
import type { RunStart, RunView } from './routes.ts';
import { type RunCall, type RunState, runEvent, runTransition } from './transitions.ts';

/** What a runner tells of one run. */
export interface Report {
  accountId: number;
  /** Of what is remembered, as of which the caller was let in; null for a caller who was asked for by itself. */
  version: string | null;
  arrivedAtMs: number;
  /** The trace that the call belongs to; null while no traces are exported. */
  traceContext: string | null;
  told: { call: 'start'; fields: RunStart } | Change;
  /** Called before the report is committed, perhaps more than once; what it throws is the report's result. */
  beforeCommit(): void;
}

/** What changes a run that has started. */
interface Change {
  call: Exclude<RunCall['call'], 'start'>;
  runId: number;
  transition: RunCall;
  /** What it brings, beside the status, to a run that it changes. */
  details: (arrivedAt: string) => Partial<RunView>;
}

export type ReportOutcome =
  | { kind: 'started' | 'known' | 'recorded'; run: RunView }
  | { kind: 'unknown_job' | 'not_found' }
  | { kind: 'conflict'; message: string }
  /** The caller, as it was let in, may be another by now. */
  | { kind: 'outdated' }
  /** Somebody else is changing the run, and others must not wait for that. */
  | { kind: 'held' };

/** A report on its way: with its place among those that it came with. */
export interface Open {
  report: Report;
  index: number;
  /** The runner's own number of its run, or one that was drawn for it. */
  runId: number;
  /** Somebody has a run of that number: what came of it is to be read. */
  isTaken: boolean;
}

export interface PlannedWrite {
  open: Open;
  write: RunWrite;
}

export type Planned =
  | (PlannedWrite & { outcome?: never })
  | { open: Open; outcome: ReportOutcome; write?: never };

export function nameOf({ report: { accountId }, runId }: Open): string {
  return keyOf({ accountId, id: runId });
}

/** Undefined for a start whose run the service has to number. */
export function broughtNumber(told: Report['told']): number | undefined {
  return told.call === 'start' ? told.fields.run_id : told.runId;
}

/** Of a run that nobody has: its first state, and the events of it. */
export function planStart(open: Open, { version, job }: JobAtVersion): Planned {
  const { report, runId } = open;
  if (isOutdated(report, version)) return { open, outcome: { kind: 'outdated' } };
  if (job === null) return { open, outcome: { kind: 'unknown_job' } };
  const run = newRun(job, runId, report);
  const transition = runTransition(null, { call: 'start' });
  const eventTypes = transition.kind === 'changed' ? transition.events : [];
  const events = eventTypes.map((eventType) => runEvent(eventType, run, report.arrivedAtMs));
  return { open, write: { run, expected: null, version, events, traceContext: report.traceContext } };
}

/** A change of a run, or a start whose number is taken. @param run as it was found; undefined where there is none */
export function planWithRun(open: Open, run: RunView | undefined, version: string): Planned {
  const { report } = open;
  const { told } = report;
  if (isOutdated(report, version)) return { open, outcome: { kind: 'outdated' } };
  if (told.call === 'start') return { open, outcome: knownRun(run, told.fields) };
  if (run === undefined) return { open, outcome: { kind: 'not_found' } };
  return planChange(open, told, run, version);
}

function planChange(open: Open, told: Change, run: RunView, version: string): Planned {
  const { arrivedAtMs, traceContext } = open.report;
  const transition = runTransition(stateOf(run), told.transition);
  if (transition.kind === 'conflict') return { open, outcome: transition };
  if (transition.kind === 'unchanged') return { open, outcome: { kind: 'recorded', run } };
  const changed = changedRun(run, transition.state, told.details(secondsOf(arrivedAtMs)));
  const events = transition.events.map((eventType) => runEvent(eventType, changed, arrivedAtMs));
  return { open, write: { run: changed, expected: stateOf(run), version, events, traceContext } };
}

/** Sets only the missing fields of a run that has already ended: the first report of its end stands. */
function changedRun(run: RunView, { status, finishKnown }: RunState, details: Partial<RunView>): RunView {
  const set = run.status === 'Running' ? details : missingIn(run, details);
  const changed = { ...run, ...set, status, status_code: RUN_STATUS_CODES[status] };
  return finishKnown ? { ...changed, finished_at: changed.finished_at ?? changed.errored_at } : changed;
}

function missingIn(run: RunView, details: Partial<RunView>): Partial<RunView> {
  return Object.fromEntries(
    Object.entries(details).filter(([field]) => run[field as keyof RunView] === null),
  );
}

/** The runner's number is taken: the same start again, or another job's run. */
function knownRun(run: RunView | undefined, fields: RunStart): ReportOutcome {
  if (!run) throw new Error(`run ${fields.run_id} could neither be inserted nor found`);
  if (run.job_id === fields.job_id) return { kind: 'known', run };
  return { kind: 'conflict', message: `Run ${run.id} belongs to another job.` };
}

function newRun(job: JobView, id: number, { told, arrivedAtMs }: Report): RunView {
  if (told.call !== 'start') throw new TypeError('only a start makes a run');
  const { fields } = told;
  return {
    id,
    account_id: job.account_id,
    job_id: job.id,
    job_definition_id: job.id,
    job_name: job.name,
    project_id: job.project_id,
    project_name: job.project_name,
    environment_id: job.environment_id,
    environment_name: job.environment_name,
    engine_version: fields.engine_version,
    status: 'Running',
    status_code: RUN_STATUS_CODES.Running,
    status_message: null,
    reason: fields.reason ?? null,
    started_at: fields.started_at ?? secondsOf(arrivedAtMs),
    finished_at: null,
    errored_at: null,
    artifacts_ingested_at: null,
  };
}

function isOutdated({ version }: Report, found: string): boolean {
  return version !== null && version !== found;
}

function stateOf(run: RunView): RunState {
  return {
    status: run.status,
    finishKnown: run.finished_at !== null,
    artifactsIngested: run.artifacts_ingested_at !== null,
  };
}

function secondsOf(timeMs: number): string {
  return secondsTimestamp(new Date(timeMs));
}
