import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { reportFigure } from '../proof-figures.ts';
import { FAILOVERS } from './failovers.ts';
import type { Row } from './run-fault.ts';
import { createSeededRandom } from './seeded-random.ts';
import { formatFailoverTable, formatLedgerSummary } from './table.ts';

/** Seed of the random choices, as in run-faults.ts. `npm run chaos -- --topology <name>` sets the topology. */
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const only = process.env.CHAOS_ONLY ?? '';
const topology = process.env.CHAOS_TOPOLOGY ?? 'all';
const FAILOVER_TIMEOUT_MS = 900_000;

function print(text: string): void {
  process.stderr.write(`${text}\n`);
}

const rows: Row[] = [];
const totalsByTopology = new Map<string, Row[]>();
beforeAll(() => print(`failovers, seed ${seed}`));
afterAll(() => {
  print(`\nseed ${seed}\n${formatFailoverTable(rows)}`);
  for (const [name, rowsOfTopology] of totalsByTopology) {
    const lost = rowsOfTopology.reduce((total, row) => total + row.lost, 0);
    reportFigure(
      `chaos ${name}`,
      `seed ${seed}: ${formatLedgerSummary(rowsOfTopology)}, ${lost} lost in the documented cases`,
    );
  }
});

const chosen = FAILOVERS.filter(
  (failover) => (topology === 'all' || topology === failover.topology) && failover.name.includes(only),
);

test.each(chosen)(
  'no event is lost except in the documented cases: $name',
  async (failover) => {
    const reason = failover.skipReason();
    if (reason !== null) {
      reportFigure(`chaos ${failover.topology}`, `skipped: ${failover.name} (${reason})`);
      return print(`skipped: ${failover.name}: ${reason}`);
    }
    const row = await failover.run(createSeededRandom(seed));
    rows.push(row);
    totalsByTopology.set(failover.topology, [...(totalsByTopology.get(failover.topology) ?? []), row]);
    print(
      `${new Date().toISOString().slice(11, 19)} ${row.fault}: ${row.missing} missing, ${row.lost} lost as documented, ${row.repeated} repeated`,
    );
    for (const problem of row.problems.slice(0, 10)) print(`         ${problem}`);
    expect(row.problems).toEqual([]);
    expect(row.missing).toBe(0);
    expect(row.delivered + row.failed + row.cancelled + row.unrecorded).toBe(row.expected);
    expect(row.published).toBeGreaterThan(20);
  },
  FAILOVER_TIMEOUT_MS,
);
