import { type Balance, isBalanced } from './measure/ledger.ts';
import { median } from './measure/timing.ts';
import type { RawResult } from './programs/raw.ts';
import type { PostgresPrograms, QueueName, World, WorldOptions } from './world/world.ts';

/** Figures of one run or, as medians, of several, by name; the unit is last in the name. */
export type Figures = Record<string, number>;

export interface LedgerSum {
  published: number;
  delivered: number;
  explained: number;
  repeated: number;
  missing: number;
}

/** One case of a scenario: medians of its runs, and each run. */
export interface Row {
  case: string;
  figures: Figures;
  runs: Figures[];
  ledger: LedgerSum;
}

export interface ScenarioResult {
  name: string;
  rows: Row[];
  notes?: string[];
}

/** What raw got of one process came to, in this very run of the benchmark: the measure of everything else. */
export interface RawReference {
  ratePerSecond: number;
  cpuMicrosPerRequest: number;
  concurrency: number;
}

/** Conditions of a measurement of raw got. */
export interface RawConditions {
  /** That of one measurement when omitted. */
  durationMs?: number;
  /** Requests go to so many of them, in turn; 20 when omitted. */
  endpoints?: number;
  /** The process has sent nothing before. */
  isCold?: boolean;
}

/** What the scenarios compare with, as far as the machine provides it. */
export interface Alternatives {
  /** Returns the program of the oldest Node that is supported. */
  fetchOldestNode: () => Promise<string>;
  debianPostgres: PostgresPrograms | null;
}

/** What a scenario works with. */
export interface Bench {
  isQuick: boolean;
  /** Deliveries that `list` or `parked` stores; null leaves it to the scenario. */
  stored: number | null;
  /** Of `floods` and `parked`. */
  queue: QueueName;
  /** Of one measurement. */
  runMs: number;
  runs: number;
  raw: RawReference;
  /** Of all worlds. */
  receiver: World['receiver'];
  /** Opened once for all scenarios that can share it, with one dispatcher and management. */
  sharedWorld(): Promise<World>;
  /** A fresh one, which its scenario closes. */
  openWorld(queue: QueueName, options?: Partial<WorldOptions>): Promise<World>;
  measureRaw(conditions?: RawConditions): Promise<RawResult>;
  alternatives: Alternatives;
  progress(text: string): void;
  /** Takes a case that has been measured, for the report of a run that is stopped within its scenario. */
  finished(row: Row): void;
  /** Marks the whole run as void. */
  voids(reason: string): void;
}

/** One measurement's figures with the ledger they rest on. */
export interface Measured {
  figures: Figures;
  balance: Balance;
}

/** Measures a case in each run, and voids the benchmark when a ledger does not balance. */
export async function measureCase(
  bench: Bench,
  name: string,
  measure: () => Promise<Measured>,
  runs = bench.runs,
): Promise<Row> {
  const [row] = await measureCases(bench, [name], async () => [await measure()], runs);
  return row as Row;
}

/**
 * Measures several cases in each run: what is compared is measured within minutes, because a shared machine changes its speed.
 *
 * @param measure resolves with the figures of each case, in the order of the names
 */
export async function measureCases(
  bench: Bench,
  names: readonly string[],
  measure: () => Promise<Measured[]>,
  runs = bench.runs,
): Promise<Row[]> {
  const measured: Measured[][] = [];
  for (let run = 1; run <= runs; run += 1) {
    bench.progress(`${names.join(', ')}, run ${run} of ${runs}`);
    const cases = await measure();
    for (const [index, { balance }] of cases.entries()) {
      const { missing, repeated, unknown } = balance;
      if (isBalanced(balance)) continue;
      bench.voids(
        `${names[index]}, run ${run}: ${missing} missing, ${repeated} repeated, ${unknown} unknown`,
      );
    }
    measured.push(cases);
  }
  const rows = names.map((name, index) =>
    rowOf(
      name,
      measured.map((cases) => cases[index] as Measured),
    ),
  );
  for (const row of rows) bench.finished(row);
  return rows;
}

export function rowOf(name: string, measured: readonly Measured[]): Row {
  const runs = measured.map(({ figures }) => figures);
  const names = [...new Set(runs.flatMap((figures) => Object.keys(figures)))];
  const sum = (field: keyof LedgerSum) => measured.reduce((total, { balance }) => total + balance[field], 0);
  return {
    case: name,
    runs,
    figures: Object.fromEntries(
      names.map((figure) => [
        figure,
        median(runs.map((run) => run[figure]).filter((value) => value !== undefined)),
      ]),
    ),
    ledger: {
      published: sum('published'),
      delivered: sum('delivered'),
      explained: sum('explained'),
      repeated: sum('repeated'),
      missing: sum('missing'),
    },
  };
}
