// SQL by hand: this is the hot path. A report with an Idempotency-Key is one transaction with its response.
import { inTransaction, isItemFault, type Pool } from '@runhook/database';
import { MicroBatcher } from '@runhook/runtime';
import type { Answer } from '../http/envelope.ts';
import { HeldError, OutdatedCallerError } from '../http/errors.ts';
import type { Keeper, KeptAnswer } from '../http/idempotency.ts';
import type { Relay } from './relay.ts';
import type { Report, ReportOutcome } from './report-plans.ts';
import { type Recorded, ReportRecorder } from './report-recorder.ts';
import type { RunFinish, RunStart, RunView } from './routes.ts';
import { findRun } from './statements.ts';

/** The caller of a report, and the recorder of its response. */
export interface Reporting {
  accountId: number;
  /** Version of the cached data at which the caller was admitted; null if the caller was read for this request. */
  version: string | null;
  keep: Keeper;
}

/** Makes the response from an outcome. For a request with a key, an error that it throws rolls the report back. */
export type Settle = (outcome: Settled) => Answer;

/** Outcomes that need no retry in another way. */
type Settled = Exclude<ReportOutcome, { kind: 'outdated' | 'held' }>;

/** Records what job runners report with the events that follow from it, and reads runs. */
export interface Runs {
  start(reporting: Reporting, fields: RunStart, settle: Settle): Promise<KeptAnswer>;
  finish(reporting: Reporting, runId: number, fields: RunFinish, settle: Settle): Promise<KeptAnswer>;
  ingestArtifacts(reporting: Reporting, runId: number, settle: Settle): Promise<KeptAnswer>;
  find(accountId: number, runId: number): Promise<RunView | null>;
}

export interface RunsDependencies {
  pool: Pool;
  /** For reports that are recorded in batches. */
  reportPool: Pool;
  relay: Pick<Relay, 'add'>;
  /** Called with the number of committed events. */
  onAccepted?: (count: number) => void;
  /** Returns the trace of the current call; always null unless traces are exported. */
  traceContext?: () => string | null;
  nowMs?: () => number;
}

/**
 * Group commit of reports: a commit starts at least 8 ms after the previous one unless 8 reports wait for it. After a longer
 * pause a report is committed at once. The reports of a commit share a statement and a job of the queue.
 */
export const COMMIT_SPACING = { spacingMs: 8, startSize: 8 };
const BATCH_SIZE_MAX = 200;
/** The next batch is planned while one is committed, and a third need not wait for that. */
const BATCH_SLOTS = 3;

/**
 * Commits the state of a run and its events together, those of several callers in one statement. A report with an
 * `Idempotency-Key` has a separate transaction with its response.
 */
export function createRuns(dependencies: RunsDependencies): Runs {
  const { pool, reportPool, relay, onAccepted, traceContext = () => null, nowMs = Date.now } = dependencies;
  const recorder = new ReportRecorder();
  const together = new MicroBatcher<Report, Recorded>({
    async run(reports) {
      const recorded = await recorder.record(reportPool, reports, { isTogether: true });
      pass(recorded);
      return recorded;
    },
    sizeMax: BATCH_SIZE_MAX,
    slots: BATCH_SLOTS,
    ...COMMIT_SPACING,
    isItemFault,
  });

  function accepted(recorded: Recorded): Settled {
    if (recorded.outcome === undefined) throw recorded.error;
    const { outcome } = recorded;
    if (outcome.kind === 'outdated') throw new OutdatedCallerError();
    if (outcome.kind === 'held') throw new HeldError();
    return outcome;
  }

  /** Hands events that were committed together to the queue together. */
  function pass(recorded: readonly Recorded[]): void {
    const events = recorded.flatMap((one) => (one.outcome === undefined ? [] : one.events));
    if (events.length === 0) return;
    onAccepted?.(events.length);
    relay.add(events);
  }

  async function report(
    { accountId, version, keep }: Reporting,
    told: Report['told'],
    settle: Settle,
  ): Promise<KeptAnswer> {
    const call = { accountId, version, told, arrivedAtMs: nowMs(), traceContext: traceContext() };
    const { withoutKey } = keep;
    if (withoutKey) {
      const recorded = await together.add({ beforeCommit: withoutKey.beforeCommit, ...call });
      return withoutKey.answer(settle(accepted(recorded)));
    }
    const { recorded, answer } = await inTransaction(pool, async (transaction) => {
      const [recorded] = await recorder.record(transaction, [{ ...call, beforeCommit: () => {} }], {
        isTogether: false,
      });
      return {
        recorded: recorded as Recorded,
        answer: await keep.within(transaction, settle(accepted(recorded as Recorded))),
      };
    });
    pass([recorded]);
    return answer;
  }

  return {
    start: (reporting, fields, settle) => report(reporting, { call: 'start', fields }, settle),
    finish(reporting, runId, { status, status_message, finished_at }, settle) {
      const details = (arrivedAt: string) => {
        const finishedAt = finished_at ?? arrivedAt;
        return {
          status_message: status_message ?? null,
          finished_at: finishedAt,
          errored_at: status === 'errored' ? finishedAt : null,
        };
      };
      const transition = { call: 'finish', status } as const;
      return report(reporting, { call: 'finish', runId, transition, details }, settle);
    },
    ingestArtifacts(reporting, runId, settle) {
      const details = (arrivedAt: string) => ({ artifacts_ingested_at: arrivedAt });
      const transition = { call: 'artifacts' } as const;
      return report(reporting, { call: 'artifacts', runId, transition, details }, settle);
    },
    find: (accountId, runId) => findRun(pool, accountId, runId),
  };
}
