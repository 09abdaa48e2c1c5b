import type { Queryable } from '@runhook/database';
import { type JobAtVersion, JobCache, RunIds } from './job-cache.ts';
import type { CommittedEvent } from './relay.ts';
import {
  clientRunId,
  type PendingReport,
  type PlannedReport,
  type PlannedWrite,
  planStart,
  planWithRun,
  type Report,
  type ReportOutcome,
  runKey,
} from './report-plans.ts';
import { drawFreeRunId, findRuns, keyOf, recordRuns } from './report-statements.ts';

export type ReportResult =
  | { outcome: ReportOutcome; events: CommittedEvent[]; error?: never }
  | { error: unknown; outcome?: never };

/**
 * Records many reports in one statement, each with its own outcome; a second report of a run needs another statement. A
 * report is planned with the run as it was read. The statement changes a run only if it is still in that state;
 * otherwise the report is planned again.
 */
export class ReportRecorder {
  readonly #jobs = new JobCache();
  readonly #runIds = new RunIds();

  /**
   * Returns one result per report, in input order. Within a transaction the results hold only once it commits.
   * @param isBatched whether reports of locked runs are returned as `locked` instead of waiting
   */
  async record(
    database: Queryable,
    reports: readonly Report[],
    { isBatched }: { isBatched: boolean },
  ): Promise<ReportResult[]> {
    const results: ReportResult[] = new Array(reports.length);
    let waiting = await this.#assignRunIds(database, reports);
    while (waiting.length > 0) {
      const { round, laterReports } = splitByRun(waiting);
      const plans = await this.#plan(database, round);
      const writes: PlannedWrite[] = [];
      for (const one of plans) {
        if (one.write === undefined) results[one.pending.index] = { outcome: one.outcome, events: [] };
        else {
          try {
            one.pending.report.beforeCommit();
            writes.push(one);
          } catch (error) {
            results[one.pending.index] = { error };
          }
        }
      }
      const retries = await writeRound(database, writes, results, isBatched);
      waiting = [...retries, ...excludeLocked(laterReports, writes, results)];
    }
    return results;
  }

  /** Assigns ids to new runs without one, but none that another report of the batch supplies. */
  async #assignRunIds(database: Queryable, reports: readonly Report[]): Promise<PendingReport[]> {
    const suppliedRunKeys = new Set<string>();
    for (const { accountId, content } of reports) {
      const id = clientRunId(content);
      if (id !== undefined) suppliedRunKeys.add(keyOf({ accountId, id }));
    }
    const pendingReports: PendingReport[] = [];
    for (const [index, report] of reports.entries()) {
      const isFree = (id: number) => !suppliedRunKeys.has(keyOf({ accountId: report.accountId, id }));
      const runId = clientRunId(report.content) ?? (await this.#runIds.next(database, isFree));
      pendingReports.push({ report, index, runId, isIdTaken: false });
    }
    return pendingReports;
  }

  async #plan(database: Queryable, round: readonly PendingReport[]): Promise<PlannedReport[]> {
    const starts = round.filter(({ report, isIdTaken }) => report.content.call === 'start' && !isIdTaken);
    const plans = starts.length > 0 ? await this.#planStarts(database, starts) : [];
    const others = round.filter((pending) => !starts.includes(pending));
    return others.length > 0 ? [...plans, ...(await planOthers(database, others))] : plans;
  }

  async #planStarts(database: Queryable, starts: readonly PendingReport[]): Promise<PlannedReport[]> {
    const keys = starts.map(({ report }) => ({
      accountId: report.accountId,
      id: report.content.call === 'start' ? report.content.fields.job_id : 0,
      version: report.version,
    }));
    const jobs = await this.#jobs.find(database, keys);
    return starts.map((pending, index) => planStart(pending, jobs[index] as JobAtVersion));
  }
}

/** Marks the later reports of locked runs as locked, too, and returns the others. */
function excludeLocked(
  laterReports: readonly PendingReport[],
  round: readonly { pending: PendingReport }[],
  results: ReportResult[],
): PendingReport[] {
  const lockedRuns = new Set(
    round
      .filter(({ pending }) => results[pending.index]?.outcome?.kind === 'locked')
      .map(({ pending }) => runKey(pending)),
  );
  return laterReports.filter((pending) => {
    if (!lockedRuns.has(runKey(pending))) return true;
    results[pending.index] = { outcome: { kind: 'locked' }, events: [] };
    return false;
  });
}

/** Splits off the second and later reports of each run, which depend on the outcome of the first. */
function splitByRun(waiting: readonly PendingReport[]): {
  round: PendingReport[];
  laterReports: PendingReport[];
} {
  const seen = new Set<string>();
  const round: PendingReport[] = [];
  const laterReports: PendingReport[] = [];
  for (const pending of waiting) {
    const name = runKey(pending);
    if (seen.has(name)) laterReports.push(pending);
    else {
      round.push(pending);
      seen.add(name);
    }
  }
  return { round, laterReports };
}

/** Plans changes of runs and starts whose id is taken; both need the run's current state. */
async function planOthers(database: Queryable, others: readonly PendingReport[]): Promise<PlannedReport[]> {
  const keys = others.map(({ report, runId }) => ({ accountId: report.accountId, id: runId }));
  const { version, found } = await findRuns(database, keys);
  return others.map((pending) => planWithRun(pending, found.get(runKey(pending)), version));
}

/** Returns the reports that must be planned again. */
async function writeRound(
  database: Queryable,
  writes: readonly PlannedWrite[],
  results: ReportResult[],
  isBatched: boolean,
): Promise<PendingReport[]> {
  if (writes.length === 0) return [];
  const { version, written } = await recordRuns(
    database,
    writes.map((one) => one.write),
    isBatched,
  );
  const retries: PendingReport[] = [];
  for (const { pending, write } of writes) {
    const { run, events, expected, traceContext } = write;
    if (written.has(runKey(pending))) {
      results[pending.index] = {
        outcome: { kind: expected === null ? 'started' : 'recorded', run },
        events: events.map((event) => ({ event, traceContext })),
      };
    } else if (write.version !== version)
      results[pending.index] = { outcome: { kind: 'outdated' }, events: [] };
    else if (expected !== null && isBatched)
      results[pending.index] = { outcome: { kind: 'locked' }, events: [] };
    else retries.push(await markIdTaken(database, pending));
  }
  return retries;
}

async function markIdTaken(database: Queryable, pending: PendingReport): Promise<PendingReport> {
  const { content, accountId } = pending.report;
  if (content.call !== 'start') return pending;
  if (content.fields.run_id !== undefined) return { ...pending, isIdTaken: true };
  return { ...pending, runId: await drawFreeRunId(database, accountId) };
}
