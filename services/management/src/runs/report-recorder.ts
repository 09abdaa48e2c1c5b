import { isItemFault, type Pool, type Queryable } from '@runhook/database';
import { callHalving } from '@runhook/runtime';
import { type JobAtVersion, JobCache } from './job-cache.ts';
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
import { findRuns } from './report-reads.ts';
import { recordRuns, startsTriggered } from './report-statements.ts';
import { drawFreeRunId, drawRunIds, FOLLOWED_RUN_ID_MAX, type RunIdDraw } from './run-counters.ts';

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
  readonly #idPool: Pool;

  /** @param idPool draws run ids, in separate transactions: an open one would delay all starts of its account */
  constructor(idPool: Pool) {
    this.#idPool = idPool;
  }

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
    const first = splitByRun(await this.#assignRunIds(reports));
    const retries = await this.#recordRound(database, first.round, results, isBatched);
    const waiting = [...retries, ...excludeLocked(first.laterReports, first.round, results)];
    try {
      await this.#recordLaterRounds(database, waiting, results, isBatched);
    } catch (error) {
      if (!isBatched) throw error;
      // The reports with a result are committed, so the error must not become theirs.
      for (const { index } of waiting) results[index] ??= { error };
    }
    return results;
  }

  async #recordLaterRounds(
    database: Queryable,
    reports: readonly PendingReport[],
    results: ReportResult[],
    isBatched: boolean,
  ): Promise<void> {
    let waiting = reports;
    while (waiting.length > 0) {
      const { round, laterReports } = splitByRun(waiting);
      const retries: PendingReport[] = [];
      const record = async (part: readonly PendingReport[]) =>
        void retries.push(...(await this.#recordRound(database, part, results, isBatched)));
      const rejected = await callHalving(round, record, (error) => isBatched && isItemFault(error));
      for (const { item, error } of rejected) results[item.index] = { error };
      waiting = [...retries, ...excludeLocked(laterReports, round, results)];
    }
  }

  /** Records reports of different runs, and returns those that must be planned again. */
  async #recordRound(
    database: Queryable,
    round: readonly PendingReport[],
    results: ReportResult[],
    isBatched: boolean,
  ): Promise<PendingReport[]> {
    const plans = await this.#plan(database, round);
    const writes: PlannedWrite[] = [];
    for (const one of plans) {
      if (one.write === undefined) results[one.pending.index] = { outcome: one.outcome, events: [] };
      // The statement of batches lacks the columns of a start, which nearly no change has.
      else if (isBatched && startsTriggered(one.write))
        results[one.pending.index] = { outcome: { kind: 'locked' }, events: [] };
      else {
        try {
          one.pending.report.beforeCommit();
          writes.push(one);
        } catch (error) {
          results[one.pending.index] = { error };
        }
      }
    }
    return await this.#writeRound(database, writes, results, isBatched);
  }

  /**
   * Assigns ids to new runs without one. Their reports come last, so that a report with the same client-supplied id is
   * recorded first.
   */
  async #assignRunIds(reports: readonly Report[]): Promise<PendingReport[]> {
    const draws = drawsOf(reports);
    const lastIds = draws.length > 0 ? await drawRunIds(this.#idPool, draws) : new Map<number, number>();
    const nextIds = new Map(
      draws.map(({ accountId, count }) => [accountId, (lastIds.get(accountId) ?? 0) - count + 1]),
    );
    const supplied: PendingReport[] = [];
    const drawn: PendingReport[] = [];
    for (const [index, report] of reports.entries()) {
      const clientId = clientRunId(report.content);
      if (clientId !== undefined) supplied.push({ report, index, runId: clientId, isIdTaken: false });
      else {
        const runId = nextIds.get(report.accountId) as number;
        nextIds.set(report.accountId, runId + 1);
        drawn.push({ report, index, runId, isIdTaken: false });
      }
    }
    return [...supplied, ...drawn];
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

  /** Returns the reports that must be planned again. */
  async #writeRound(
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
      const createdAt = written.get(runKey(pending));
      if (createdAt !== undefined) {
        results[pending.index] = {
          outcome:
            createdAt === null
              ? { kind: 'recorded', run }
              : { kind: 'started', run: { ...run, created_at: createdAt } },
          events: events.map((event) => ({ event, traceContext })),
        };
      } else if (write.version !== version)
        results[pending.index] = { outcome: { kind: 'outdated' }, events: [] };
      else if (expected !== null && isBatched)
        results[pending.index] = { outcome: { kind: 'locked' }, events: [] };
      else {
        try {
          retries.push(await this.#markIdTaken(pending));
        } catch (error) {
          results[pending.index] = { error };
        }
      }
    }
    return retries;
  }

  async #markIdTaken(pending: PendingReport): Promise<PendingReport> {
    const { content, accountId } = pending.report;
    if (content.call !== 'start') return pending;
    if (content.fields.run_id !== undefined) return { ...pending, isIdTaken: true };
    return { ...pending, runId: await drawFreeRunId(this.#idPool, accountId) };
  }
}

/** Returns, for each account with new runs without an id, how many ids it needs and the largest id that a start supplies. */
function drawsOf(reports: readonly Report[]): RunIdDraw[] {
  const starts = new Map<number, RunIdDraw>();
  for (const { accountId, content } of reports) {
    if (content.call !== 'start') continue;
    const draw = starts.get(accountId) ?? { accountId, count: 0, above: 0 };
    starts.set(accountId, draw);
    const id = content.fields.run_id;
    if (id === undefined) draw.count += 1;
    else if (id <= FOLLOWED_RUN_ID_MAX) draw.above = Math.max(draw.above, id);
  }
  return [...starts.values()].filter(({ count }) => count > 0);
}

/** Marks the later reports of locked runs as locked, too, and returns the others. */
function excludeLocked(
  laterReports: readonly PendingReport[],
  round: readonly PendingReport[],
  results: ReportResult[],
): PendingReport[] {
  const lockedRuns = new Set(
    round.filter(({ index }) => results[index]?.outcome?.kind === 'locked').map(runKey),
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
