import type { RawReference, ScenarioResult } from '../bench.ts';
import type { RawResult } from '../programs/raw.ts';
import type { MachineFacts } from './machine.ts';

/** Everything one run of the benchmark came to: the JSON file. */
export interface Report {
  startedAt: string;
  seconds: number;
  isQuick: boolean;
  lengths: Record<string, number>;
  machine: MachineFacts;
  raw: RawReference & { runs: RawResult[]; afterRatePerSecond: number };
  /** Why the run counts for nothing; empty when it does. */
  voided: string[];
  scenarios: ScenarioResult[];
}
