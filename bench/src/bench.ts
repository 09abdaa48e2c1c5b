import { type Balance, isBalanced } from './measure/ledger.ts';
import { median } from './measure/timing.ts';
import type { RawResult } from './programs/raw.ts';
import type { PostgresPrograms, QueueName, World, WorldOptions } from './world/world.ts';

/** Figures of one run, or medians of several, by name; the unit is the last part of the name. */
export type Figures = Record<string, number>;

export interface LedgerSum {
  published: number;
  delivered: number;
  explained: number;
  repeated: number;
  missing: number;
}

/** A case of a scenario: the medians of its runs, and each run. */
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

/** Results of raw got, a process that only sends the same requests; other figures are compared with them. */
export interface RawReference {
  ratePerSecond: number;
  cpuMicrosPerRequest: number;
  concurrency: number;
}

/** Conditions of a measurement of raw got. */
export interface RawConditions {
  /** Default: the duration of one measurement. */
  durationMs?: number;
  /** Number of endpoints that get requests in turn; default 20. */
  endpoints?: number;
  /** Whether the process has sent nothing before. */
  isCold?: boolean;
}

/** Programs that scenarios compare with, if the machine provides them. */
export interface Alternatives {
  /** Returns the program of the oldest Node that is supported. */
  fetchOldestNode: () => Promise<string>;
  debianPostgres: PostgresPrograms | null;
}

/** The environment of a scenario. */
export interface Bench {
  isQuick: boolean;
  /** Number of deliveries that the scenarios `list` and `deferred` store first; null: the default of the scenario. */
  stored: number | null;
  /** Back end of the queue in the scenarios `floods`, `deferred` and `soak`. */
  queue: QueueName;
  /** Duration of one measurement. */
  runMs: number;
  runs: number;
  raw: RawReference;
  /** The process with the subscribers' endpoints, which all worlds share. */
  receiver: World['receiver'];
  /**
   * Returns the servers and services that scenarios share, with one dispatcher and management; started by the first
   * call.
   */
  sharedWorld(): Promise<World>;
  /** Starts new servers and services, which the scenario must close. */
  openWorld(queue: QueueName, options?: Partial<WorldOptions>): Promise<World>;
  measureRaw(conditions?: RawConditions): Promise<RawResult>;
  alternatives: Alternatives;
  progress(text: string): void;
  /** Adds a measured case to the report, even if the run is stopped within its scenario. */
  addRow(row: Row): void;
  /** Marks the whole run as void. */
  markVoid(reason: string): void;
}

/** The figures of one measurement, with the ledger that verifies them. */
export interface Measured {
  figures: Figures;
  balance: Balance;
}

/** Measures a case as often as the benchmark has runs, and voids the benchmark if a ledger does not balance. */
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
 * Measures several cases in each run. Cases that are compared are measured within minutes, because the speed of a
 * shared machine varies.
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
      bench.markVoid(
        `${names[index]}, run ${run}: ${missing} missing, ${repeated} repeated, ${unknown} unknown`,
      );
    }
    measured.push(cases);
  }
  const rows = names.map((name, index) =>
    createRow(
      name,
      measured.map((cases) => cases[index] as Measured),
    ),
  );
  for (const row of rows) bench.addRow(row);
  return rows;
}

export function createRow(name: string, measured: readonly Measured[]): Row {
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
