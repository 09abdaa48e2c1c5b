import type { ScenarioResult } from '../src/bench.ts';
import type { Report } from '../src/report/targets.ts';

export const ledger = { published: 10, delivered: 10, explained: 0, repeated: 0, missing: 0 };

export const scenario = (name: string, rows: Record<string, Record<string, number>>): ScenarioResult => ({
  name,
  rows: Object.entries(rows).map(([one, figures]) => ({ case: one, figures, runs: [figures], ledger })),
});

export const report = (scenarios: ScenarioResult[], voided: string[] = []): Report => ({
  startedAt: '2026-11-21T10:00:00.000Z',
  seconds: 1_800,
  isQuick: false,
  lengths: { runs: 3, seconds: 8 },
  machine: { cores: 2, processor: 'Test', memoryGigabytes: 8, system: 'linux', node: '20.20.2' },
  raw: {
    ratePerSecond: 3_700,
    cpuMicrosPerRequest: 290,
    concurrency: 64,
    runs: [],
    afterRatePerSecond: 3_650,
  },
  voided,
  scenarios,
});
