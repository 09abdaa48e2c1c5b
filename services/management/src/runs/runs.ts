// SQL by hand: the hot path; a run, its events and their places in the outbox are one transaction.
import { type EventType, idDay, type JobRunEvent, secondsTimestamp } from '@runhook/contract';
import { inTransaction, type Pool, runStatement, type Transaction } from '@runhook/database';
import type { RunFinish, RunStart, RunView } from './routes.ts';
import { findJob, findRun, insertRun, listRuns, type RunFilters, updateRun } from './statements.ts';
import { type RunCall, type RunState, runEvent, runTransition } from './transitions.ts';

export type StartOutcome =
  | { kind: 'started' | 'known'; run: RunView }
  | { kind: 'unknown_job' }
  | { kind: 'conflict'; message: string };

export type ReportOutcome =
  | { kind: 'recorded'; run: RunView }
  | { kind: 'not_found' }
  | { kind: 'conflict'; message: string };

/** Makes of an outcome what its caller gets, as the last of the transaction; what it throws undoes the transaction. */
export type Settle<Outcome, Settled> = (outcome: Outcome, transaction: Transaction) => Promise<Settled>;

/** The runs of accounts: what job runners report, with the events that follow from it, and what is on record. */
export interface Runs {
  start<Settled>(
    accountId: number,
    fields: RunStart,
    settle: Settle<StartOutcome, Settled>,
  ): Promise<Settled>;
  finish<Settled>(
    accountId: number,
    runId: number,
    fields: RunFinish,
    settle: Settle<ReportOutcome, Settled>,
  ): Promise<Settled>;
  ingestArtifacts<Settled>(
    accountId: number,
    runId: number,
    settle: Settle<ReportOutcome, Settled>,
  ): Promise<Settled>;
  find(accountId: number, runId: number): Promise<RunView | null>;
  list(
    accountId: number,
    filters: RunFilters,
    page: { limit: number; offset: number },
  ): Promise<{ runs: RunView[]; totalCount: number }>;
}

export interface RunsDependencies {
  pool: Pool;
  /** Told when events were committed to the outbox. */
  relay: { wake(): void };
  /** Told how many events were committed. */
  onAccepted?: (count: number) => void;
  /** The trace that a call belongs to; always null while no traces are exported. */
  traceContext?: () => string | null;
  nowMs?: () => number;
}

/** A run's state, its events and their places in the outbox are committed together or not at all. */
export function createRuns(dependencies: RunsDependencies): Runs {
  const { pool, relay, onAccepted, traceContext = () => null, nowMs = Date.now } = dependencies;

  function accepted(count: number): void {
    if (count === 0) return;
    onAccepted?.(count);
    relay.wake();
  }

  const callNow = (): RunCallContext => ({ arrivedAtMs: nowMs(), traceContext: traceContext() });

  /** One transaction: what `record` does, and what `settle` makes of it. */
  async function recorded<Outcome, Settled>(
    record: (transaction: Transaction) => Promise<{ outcome: Outcome; eventCount: number }>,
    settle: Settle<Outcome, Settled>,
  ): Promise<Settled> {
    const { settled, eventCount } = await inTransaction(pool, async (transaction) => {
      const { outcome, eventCount } = await record(transaction);
      return { settled: await settle(outcome, transaction), eventCount };
    });
    accepted(eventCount);
    return settled;
  }

  function report<Settled>(reported: Report, settle: Settle<ReportOutcome, Settled>): Promise<Settled> {
    const call = callNow();
    return recorded((transaction) => recordReport(transaction, reported, call), settle);
  }

  return {
    start(accountId, fields, settle) {
      const call = callNow();
      return recorded(async (transaction) => {
        const outcome = await recordStart(transaction, accountId, fields, call);
        return { outcome, eventCount: outcome.kind === 'started' ? 1 : 0 };
      }, settle);
    },
    finish(accountId, runId, { status, status_message, finished_at }, settle) {
      const details = (arrivedAt: string) => {
        const finishedAt = finished_at ?? arrivedAt;
        return {
          status_message: status_message ?? null,
          finished_at: finishedAt,
          errored_at: status === 'errored' ? finishedAt : null,
        };
      };
      return report({ accountId, runId, call: { call: 'finish', status }, details }, settle);
    },
    ingestArtifacts(accountId, runId, settle) {
      const details = (arrivedAt: string) => ({ artifacts_ingested_at: arrivedAt });
      return report({ accountId, runId, call: { call: 'artifacts' }, details }, settle);
    },
    find: (accountId, runId) => findRun(pool, accountId, runId),
    list: (accountId, filters, page) => listRuns(pool, accountId, filters, page),
  };
}

/** When and in which trace a call arrived. */
interface RunCallContext {
  arrivedAtMs: number;
  traceContext: string | null;
}

async function recordStart(
  transaction: Transaction,
  accountId: number,
  fields: RunStart,
  call: RunCallContext,
): Promise<StartOutcome> {
  const job = await findJob(transaction, accountId, fields.job_id);
  if (!job) return { kind: 'unknown_job' };
  const run = await insertRun(transaction, {
    id: fields.run_id,
    job,
    engineVersion: fields.engine_version,
    reason: fields.reason ?? null,
    startedAt: fields.started_at ?? secondsOf(call.arrivedAtMs),
  });
  if (!run) return await knownRun(transaction, accountId, fields);
  const transition = runTransition(null, { call: 'start' });
  if (transition.kind === 'changed') await sendEvents(transaction, transition.events, run, call);
  return { kind: 'started', run };
}

/** The runner's number is taken: the same start again, or another job's run. */
async function knownRun(
  transaction: Transaction,
  accountId: number,
  fields: RunStart,
): Promise<StartOutcome> {
  const runId = fields.run_id as number;
  const run = await findRun(transaction, accountId, runId);
  if (!run) throw new Error(`run ${runId} could neither be inserted nor found`);
  if (run.job_id === fields.job_id) return { kind: 'known', run };
  return { kind: 'conflict', message: `Run ${runId} belongs to another job.` };
}

/** What a runner tells of a run that has started. */
interface Report {
  accountId: number;
  runId: number;
  call: RunCall;
  /** What it brings, beside the status, to a run that it changes. */
  details: (arrivedAt: string) => Partial<RunView>;
}

async function recordReport(
  transaction: Transaction,
  { accountId, runId, call, details }: Report,
  context: RunCallContext,
): Promise<{ outcome: ReportOutcome; eventCount: number }> {
  const run = await findRun(transaction, accountId, runId, 'FOR UPDATE');
  if (!run) return { outcome: { kind: 'not_found' }, eventCount: 0 };
  const transition = runTransition(stateOf(run), call);
  if (transition.kind === 'conflict') return { outcome: transition, eventCount: 0 };
  if (transition.kind === 'unchanged') return { outcome: { kind: 'recorded', run }, eventCount: 0 };
  const status = transition.status ?? run.status;
  const changed = await updateRun(transaction, {
    ...run,
    ...details(secondsOf(context.arrivedAtMs)),
    status,
  });
  await sendEvents(transaction, transition.events, changed, context);
  return { outcome: { kind: 'recorded', run: changed }, eventCount: transition.events.length };
}

async function sendEvents(
  transaction: Transaction,
  eventTypes: readonly EventType[],
  run: RunView,
  { arrivedAtMs, traceContext }: RunCallContext,
): Promise<void> {
  const events = eventTypes.map((eventType) => runEvent(eventType, run, arrivedAtMs));
  await insertEvents(transaction, events, traceContext);
}

function stateOf(run: RunView): RunState {
  return { status: run.status, artifactsIngested: run.artifacts_ingested_at !== null };
}

function secondsOf(timeMs: number): string {
  return secondsTimestamp(new Date(timeMs));
}

/**
 * Stores events and puts them on their way to the queue, in their order. `data` is JSON text, so keys keep theirs.
 * @param traceContext the trace of the call that caused them
 */
export async function insertEvents(
  transaction: Transaction,
  events: readonly JobRunEvent[],
  traceContext: string | null = null,
): Promise<void> {
  if (events.length === 0) return;
  await runStatement(
    transaction,
    `WITH given AS (
       SELECT * FROM unnest($1::date[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[])
         WITH ORDINALITY AS given (day, id, account_id, event_type, "timestamp", data, position)
     ), stored AS (
       INSERT INTO events (day, id, account_id, event_type, "timestamp", data, trace_context)
       SELECT day, id, account_id, event_type, "timestamp", data::json, $7 FROM given
     )
     INSERT INTO outbox (day, event_id) SELECT day, id FROM given ORDER BY position`,
    [
      events.map(({ eventId }) => idDay('event', eventId)),
      events.map(({ eventId }) => eventId),
      events.map(({ accountId }) => accountId),
      events.map(({ eventType }) => eventType),
      events.map(({ timestamp }) => timestamp),
      events.map(({ data }) => JSON.stringify(data)),
      traceContext,
    ],
  );
}
