import type { Queryable } from '@runhook/database';
import type { CommittedEvent } from './relay.ts';
import { type JobAtVersion, RememberedJobs, RunNumbers } from './remembered.ts';
import {
  broughtNumber,
  nameOf,
  type Open,
  type Planned,
  type PlannedWrite,
  planStart,
  planWithRun,
  type Report,
  type ReportOutcome,
} from './report-plans.ts';
import { drawFreeNumber, findRuns, keyOf, recordRuns } from './report-statements.ts';

export type Recorded =
  | { outcome: ReportOutcome; events: CommittedEvent[]; error?: never }
  | { error: unknown; outcome?: never };

/**
 * Records many reports in one statement, each with its own outcome. A report is planned with the run as it was read.
 * The statement changes a run only if it is still in that state; otherwise the report is planned again.
 */
export class ReportRecorder {
  readonly #jobs = new RememberedJobs();
  readonly #numbers = new RunNumbers();

  /**
   * Returns one result per report, in input order. Within a transaction the results hold only once it commits.
   * @param isTogether whether reports of locked runs are returned as `held` instead of waiting
   */
  async record(
    database: Queryable,
    reports: readonly Report[],
    { isTogether }: { isTogether: boolean },
  ): Promise<Recorded[]> {
    const results: Recorded[] = new Array(reports.length);
    let waiting = await this.#numbered(database, reports);
    while (waiting.length > 0) {
      const { round, later } = oneOfEachRun(waiting);
      const planned = await this.#plan(database, round);
      const writes: PlannedWrite[] = [];
      for (const one of planned) {
        if (one.write === undefined) results[one.open.index] = { outcome: one.outcome, events: [] };
        else {
          try {
            one.open.report.beforeCommit();
            writes.push(one);
          } catch (error) {
            results[one.open.index] = { error };
          }
        }
      }
      const again = await writeRound(database, writes, results, isTogether);
      waiting = [...again, ...notHeld(later, writes, results)];
    }
    return results;
  }

  /** Assigns run ids, but none that another report of the batch supplies. */
  async #numbered(database: Queryable, reports: readonly Report[]): Promise<Open[]> {
    const brought = new Set<string>();
    for (const { accountId, told } of reports) {
      const id = broughtNumber(told);
      if (id !== undefined) brought.add(keyOf({ accountId, id }));
    }
    const numbered: Open[] = [];
    for (const [index, report] of reports.entries()) {
      const isFree = (id: number) => !brought.has(keyOf({ accountId: report.accountId, id }));
      const runId = broughtNumber(report.told) ?? (await this.#numbers.next(database, isFree));
      numbered.push({ report, index, runId, isTaken: false });
    }
    return numbered;
  }

  async #plan(database: Queryable, round: readonly Open[]): Promise<Planned[]> {
    const starts = round.filter(({ report, isTaken }) => report.told.call === 'start' && !isTaken);
    const planned = starts.length > 0 ? await this.#planStarts(database, starts) : [];
    const others = round.filter((open) => !starts.includes(open));
    return others.length > 0 ? [...planned, ...(await planOthers(database, others))] : planned;
  }

  async #planStarts(database: Queryable, starts: readonly Open[]): Promise<Planned[]> {
    const wanted = starts.map(({ report }) => ({
      accountId: report.accountId,
      id: report.told.call === 'start' ? report.told.fields.job_id : 0,
      version: report.version,
    }));
    const jobs = await this.#jobs.of(database, wanted);
    return starts.map((open, index) => planStart(open, jobs[index] as JobAtVersion));
  }
}

/** Marks the later reports of locked runs as locked, too, and returns the others. */
function notHeld(later: readonly Open[], round: readonly { open: Open }[], results: Recorded[]): Open[] {
  const held = new Set(
    round.filter(({ open }) => results[open.index]?.outcome?.kind === 'held').map(({ open }) => nameOf(open)),
  );
  return later.filter((open) => {
    if (!held.has(nameOf(open))) return true;
    results[open.index] = { outcome: { kind: 'held' }, events: [] };
    return false;
  });
}

/** Splits off the second and later reports of each run, which depend on the outcome of the first. */
function oneOfEachRun(waiting: readonly Open[]): { round: Open[]; later: Open[] } {
  const seen = new Set<string>();
  const round: Open[] = [];
  const later: Open[] = [];
  for (const open of waiting) {
    const name = nameOf(open);
    if (seen.has(name)) later.push(open);
    else {
      round.push(open);
      seen.add(name);
    }
  }
  return { round, later };
}

/** Plans changes of runs and starts whose id is taken; both need the run's current state. */
async function planOthers(database: Queryable, others: readonly Open[]): Promise<Planned[]> {
  const wanted = others.map(({ report, runId }) => ({ accountId: report.accountId, id: runId }));
  const { version, found } = await findRuns(database, wanted);
  return others.map((open) => planWithRun(open, found.get(nameOf(open)), version));
}

/** Returns the reports that must be planned again. */
async function writeRound(
  database: Queryable,
  writes: readonly PlannedWrite[],
  results: Recorded[],
  isTogether: boolean,
): Promise<Open[]> {
  if (writes.length === 0) return [];
  const { version, written } = await recordRuns(
    database,
    writes.map((one) => one.write),
    isTogether,
  );
  const again: Open[] = [];
  for (const { open, write } of writes) {
    const { run, events, expected, traceContext } = write;
    if (written.has(nameOf(open))) {
      results[open.index] = {
        outcome: { kind: expected === null ? 'started' : 'recorded', run },
        events: events.map((event) => ({ event, traceContext })),
      };
    } else if (write.version !== version) results[open.index] = { outcome: { kind: 'outdated' }, events: [] };
    else if (expected !== null && isTogether) results[open.index] = { outcome: { kind: 'held' }, events: [] };
    else again.push(await asTaken(database, open));
  }
  return again;
}

async function asTaken(database: Queryable, open: Open): Promise<Open> {
  const { told, accountId } = open.report;
  if (told.call !== 'start') return open;
  if (told.fields.run_id !== undefined) return { ...open, isTaken: true };
  return { ...open, runId: await drawFreeNumber(database, accountId) };
}
