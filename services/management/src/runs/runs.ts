// SQL by hand: this is the hot path. A report with an Idempotency-Key is one transaction with its response.
import {
  type CompressedRunStep,
  compressRunSteps,
  inTransaction,
  isItemFault,
  type Pool,
} from '@runhook/database';
import { MicroBatcher } from '@runhook/runtime';
import type { EndpointResponse } from '../http/envelope.ts';
import { RunLockedError, StaleCredentialError, UnbatchedReportError } from '../http/errors.ts';
import type { RecordedResponse, ResponseRecorder } from '../http/idempotency.ts';
import type { Relay } from './relay.ts';
import { beginChange, clientRunId, type Report, type ReportOutcome } from './report-plans.ts';
import { ReportRecorder, type ReportResult } from './report-recorder.ts';
import type { RunBegin, RunFinish, RunStart } from './routes.ts';
import { renewLease } from './run-requests.ts';
import type { RunView } from './run-view.ts';
import { findRun } from './statements.ts';
import { storeSteps } from './step-statements.ts';

/** The caller of a report, and the recorder of its response. */
export interface Reporting {
  accountId: number;
  /** Value of `cache_version` at which the caller was read; null for a console session, which is never cached. */
  version: string | null;
  recorder: ResponseRecorder;
  /** Token of the runner's lease; null or omitted for a report without one, which is accepted. */
  leaseToken?: string | null;
}

/** Makes the response from an outcome. For a request with a key, an error that it throws rolls the report back. */
export type CreateResponse = (outcome: FinalOutcome) => EndpointResponse;

/** Outcomes that become a response; after the others the report is repeated. */
type FinalOutcome = Exclude<ReportOutcome, { kind: 'outdated' | 'locked' }>;

/** Records the reports of job runners, together with the events that result from them, and reads runs. */
export interface Runs {
  start(reporting: Reporting, fields: RunStart, createResponse: CreateResponse): Promise<RecordedResponse>;
  finish(
    reporting: Reporting,
    runId: number,
    fields: RunFinish,
    createResponse: CreateResponse,
  ): Promise<RecordedResponse>;
  ingestArtifacts(
    reporting: Reporting,
    runId: number,
    createResponse: CreateResponse,
  ): Promise<RecordedResponse>;
  /** Starts a triggered run. */
  begin(
    reporting: Reporting,
    runId: number,
    fields: RunBegin,
    createResponse: CreateResponse,
  ): Promise<RecordedResponse>;
  cancel(reporting: Reporting, runId: number, createResponse: CreateResponse): Promise<RecordedResponse>;
  find(accountId: number, runId: number): Promise<RunView | null>;
}

export interface RunsDependencies {
  pool: Pool;
  /** For reports that are recorded in batches, and for run ids. */
  reportPool: Pool;
  relay: Pick<Relay, 'add'>;
  /** Quota of an account's steps; see `RunStepsTarget`. */
  stepsBytesMax: number;
  /** Called with the number of committed events. */
  onAccepted?: (count: number) => void;
  /** Returns the trace of the current call; always null unless traces are exported. */
  traceContext?: () => string | null;
  nowMs?: () => number;
}

/**
 * Group commit of reports: a commit starts at least 8 ms after the previous one unless 8 reports wait for it. After a
 * longer pause a report is committed at once. The reports of a commit share a statement; their events share jobs.
 */
export const COMMIT_SPACING = { spacingMs: 8, startSize: 8 };
const BATCH_SIZE_MAX = 200;
/** Number of concurrent batches: two can be planned or committed while another is committed. */
const BATCH_SLOTS = 3;

/**
 * Commits the state of a run and its events together, those of several callers in one statement. A report with an
 * `Idempotency-Key` has a separate transaction with its response.
 */
export function createRuns(dependencies: RunsDependencies): Runs {
  const { pool, reportPool, relay, stepsBytesMax, onAccepted } = dependencies;
  const { traceContext = () => null, nowMs = Date.now } = dependencies;
  const reportRecorder = new ReportRecorder(reportPool);
  const batcher = new MicroBatcher<Report, ReportResult>({
    async run(reports) {
      const results = await reportRecorder.record(reportPool, reports, { isBatched: true });
      relayCommitted(results);
      return results;
    },
    sizeMax: BATCH_SIZE_MAX,
    slots: BATCH_SLOTS,
    ...COMMIT_SPACING,
    isItemFault,
  });

  function requireFinalOutcome(result: ReportResult): FinalOutcome {
    if (result.outcome === undefined) throw result.error;
    const { outcome } = result;
    if (outcome.kind === 'outdated') throw new StaleCredentialError();
    if (outcome.kind === 'locked') throw new RunLockedError();
    return outcome;
  }

  /** Hands events that were committed together to the relay together. */
  function relayCommitted(results: readonly ReportResult[]): void {
    const events = results.flatMap((one) => (one.outcome === undefined ? [] : one.events));
    if (events.length === 0) return;
    onAccepted?.(events.length);
    relay.add(events);
  }

  function requireUnbatched({ batch }: ResponseRecorder): void {
    if (batch) throw new UnbatchedReportError();
  }

  /** @param steps steps of the run, which are committed with the report */
  async function report(
    { accountId, version, recorder, leaseToken = null }: Reporting,
    content: Report['content'],
    createResponse: CreateResponse,
    steps: readonly CompressedRunStep[] = [],
  ): Promise<RecordedResponse> {
    const call = { accountId, version, content, arrivedAtMs: nowMs(), traceContext: traceContext() };
    const { batch } = recorder;
    if (steps.length > 0 || leaseToken !== null) requireUnbatched(recorder);
    if (batch) {
      const result = await batcher.add({ beforeCommit: batch.beforeCommit, ...call });
      return batch.accept(createResponse(requireFinalOutcome(result)));
    }
    const { result, response } = await inTransaction(pool, async (transaction) => {
      const runId = clientRunId(content);
      if (leaseToken !== null && runId !== undefined)
        await renewLease(transaction, { accountId, runId, token: leaseToken });
      const [result] = await reportRecorder.record(transaction, [{ ...call, beforeCommit: () => {} }], {
        isBatched: false,
      });
      const outcome = requireFinalOutcome(result as ReportResult);
      const response = createResponse(outcome);
      if ('run' in outcome) {
        const target = { accountId, runId: outcome.run.id, accountBytesMax: stepsBytesMax };
        // The finish of a run that was cancelled is unchanged, too, and has the last steps of its runner.
        const retainsEnded = outcome.kind === 'unchanged' ? 'always' : undefined;
        await storeSteps(transaction, { ...target, retainsEnded }, steps);
      }
      return { result: result as ReportResult, response: await recorder.record(transaction, response) };
    });
    relayCommitted([result]);
    return response;
  }

  return {
    start: (reporting, fields, createResponse) =>
      report(reporting, { call: 'start', fields }, createResponse),
    /** Leaves the batch before the compression, which would be repeated after it. */
    async finish(reporting, runId, { status, status_message, finished_at, run_steps }, createResponse) {
      const details = (arrivedAt: string) => {
        const finishedAt = finished_at ?? arrivedAt;
        return {
          status_message: status_message ?? null,
          finished_at: finishedAt,
          errored_at: status === 'errored' ? finishedAt : null,
        };
      };
      const transition = { call: 'finish', status } as const;
      if (run_steps?.length) requireUnbatched(reporting.recorder);
      const steps = run_steps === undefined ? [] : await compressRunSteps(run_steps);
      return await report(reporting, { call: 'finish', runId, transition, details }, createResponse, steps);
    },
    ingestArtifacts(reporting, runId, createResponse) {
      const details = (arrivedAt: string) => ({ artifacts_ingested_at: arrivedAt });
      const transition = { call: 'artifacts' } as const;
      return report(reporting, { call: 'artifacts', runId, transition, details }, createResponse);
    },
    begin: (reporting, runId, fields, createResponse) =>
      report(reporting, beginChange(runId, { call: 'begin' }, fields), createResponse),
    cancel(reporting, runId, createResponse) {
      const details = (arrivedAt: string) => ({ finished_at: arrivedAt });
      const transition = { call: 'cancel' } as const;
      return report(reporting, { call: 'cancel', runId, transition, details }, createResponse);
    },
    find: (accountId, runId) => findRun(pool, accountId, runId),
  };
}
