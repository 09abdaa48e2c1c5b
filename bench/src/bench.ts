import { type Balance, isBalanced } from './measure/ledger.ts';
import { median } from './measure/timing.ts';
import type { RawResult } from './programs/raw.ts';
import type { QueueName, World, WorldOptions } from './world/world.ts';

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
  measureRaw(client: 'got' | 'got.stream' | 'node:http', runMs: number): Promise<RawResult>;
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

/** Runs a case as often as it must be, and voids the benchmark when a ledger does not balance. */
export async function measureCase(
  bench: Bench,
  name: string,
  measure: () => Promise<Measured>,
  runs = bench.runs,
): Promise<Row> {
  const measured: Measured[] = [];
  for (let run = 1; run <= runs; run += 1) {
    bench.progress(`${name}, run ${run} of ${runs}`);
    const one = await measure();
    const { missing, repeated, unknown } = one.balance;
    if (!isBalanced(one.balance)) {
      bench.voids(`${name}, run ${run}: ${missing} missing, ${repeated} repeated, ${unknown} unknown`);
    }
    measured.push(one);
  }
  const row = rowOf(name, measured);
  bench.finished(row);
  return row;
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
