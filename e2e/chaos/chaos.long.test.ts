import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { reportFigure } from '../proof-figures.ts';
import { FAULTS } from './faults.ts';
import { type Row, runFault } from './run-fault.ts';
import {
  backends,
  expectNothingLost,
  FAULT_TIMEOUT_MS,
  openSeededWorld,
  print,
  printProblems,
  runFaults,
  seed,
} from './run-faults.ts';
import type { SeededRandom } from './seeded-random.ts';
import { formatLedgerSummary, formatLedgerTable } from './table.ts';
import { isLong, type World } from './world.ts';

const only = process.env.CHAOS_ONLY ?? '';
/** Limit until everything is delivered after a fault, on a machine without other load. */
const DRAINED_WITHIN_SECONDS = 60;

/** Faults with short waits, including those of `npm test`. */
const MINIMUM_RUNS = [
  'all at once',
  'PostgreSQL rejects writes',
  'the disk of the log is full',
  "another account's endpoint on the same host hangs",
  'another account sends text that stores reject, then PostgreSQL, Redis and a dispatcher are killed',
  'a default partition is converted under load',
];

function printRow(row: Row): void {
  const { backend, fault, missing, repeated, drainedSeconds, healthySeconds = 0, problems } = row;
  const time = new Date().toISOString().slice(11, 19);
  print(
    `${time} ${fault}, queue on ${backend}: ${missing} missing, ${repeated} repeated, ` +
      `${drainedSeconds.toFixed(1)} s, healthy within ${healthySeconds.toFixed(1)} s`,
  );
  printProblems({ problems });
}

if (isLong) {
  const rows: Row[] = [];
  beforeAll(() => print(`chaos, seed ${seed}`));
  afterAll(() => {
    rows.sort((a, b) => (a.backend < b.backend ? -1 : a.backend > b.backend ? 1 : 0));
    print(`\nseed ${seed}\n${formatLedgerTable(rows)}`);
    reportFigure('chaos', `seed ${seed}: ${formatLedgerSummary(rows)}`);
  });

  const chosen = FAULTS.filter(({ name }) => name.includes(only));
  describe.each([false, true])('with proxies in front of PostgreSQL and the queue: %s', (usesProxies) => {
    const faults = chosen.filter((fault) => (fault.usesProxies ?? false) === usesProxies);
    if (faults.length === 0) return;
    // Both back ends run concurrently, because most of a fault is waiting.
    let worlds: { world: World; random: SeededRandom }[] = [];
    beforeAll(async () => {
      worlds = await Promise.all(backends.map((backend) => openSeededWorld(backend, usesProxies)));
    });
    afterAll(() => Promise.all(worlds.map(({ world }) => world.close())));

    test.each(faults)(
      'no event is lost by the fault "$name"',
      async (fault) => {
        const reason = fault.skipReason?.() ?? null;
        if (reason !== null) {
          reportFigure('chaos', `skipped: ${fault.name} (${reason})`);
          return print(`skipped: ${fault.name}: ${reason}`);
        }
        const faultsRun = worlds.filter(
          ({ world }) => fault.only === undefined || fault.only === world.backend,
        );
        const outcome = await Promise.allSettled(
          faultsRun.map(async ({ world, random }) => {
            const row = await runFault(world, fault, random);
            rows.push(row);
            printRow(row);
            return row;
          }),
        );
        for (const result of outcome) {
          if (result.status === 'rejected') throw result.reason;
          const row = result.value;
          expectNothingLost(row);
          expect(row.drainedSeconds).toBeLessThan(fault.drainedWithinSeconds ?? DRAINED_WITHIN_SECONDS);
          expect(row.longestWaitSeconds).toBeLessThan(fault.stallSecondsMax ?? Number.POSITIVE_INFINITY);
        }
      },
      FAULT_TIMEOUT_MS,
    );
  });
} else {
  // Both back ends run concurrently, because most of a fault is waiting.
  test(
    'no event is lost by any of six faults, on either queue',
    async () => {
      const rows = (await Promise.all(backends.map((backend) => runFaults(backend, MINIMUM_RUNS)))).flat();
      print(`chaos, seed ${seed}\n${formatLedgerTable(rows)}`);
      for (const row of rows) expectNothingLost(row);
    },
    FAULT_TIMEOUT_MS,
  );
}
