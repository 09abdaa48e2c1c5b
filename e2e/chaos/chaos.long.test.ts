import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { reportFigure } from '../proof-figures.ts';
import { FAULTS } from './faults.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type Row, strike } from './strike.ts';
import {
  backends,
  expectNothingLost,
  FAULT_TIMEOUT_MS,
  openSeededWorld,
  say,
  sayProblems,
  seed,
  strikeAll,
} from './strike-all.ts';
import { ledgerSummary, ledgerTable } from './table.ts';
import { isLong, type World } from './world.ts';

const only = process.env.CHAOS_ONLY ?? '';
/** Applies to a machine without other load. */
const DRAINED_WITHIN_SECONDS = 60;

/** Faults with short waits, including those of `npm test`. */
const SHORT_FORM = [
  'all at once',
  'PostgreSQL rejects writes',
  'the disk of the log is full',
  "another account's endpoint on the same host hangs",
  'another account sends text that stores reject, then PostgreSQL, Redis and a dispatcher are killed',
  'a default partition is converted under load',
];

function sayRow(row: Row): void {
  const { backend, fault, missing, repeated, drainedSeconds, healthySeconds = 0, problems } = row;
  const time = new Date().toISOString().slice(11, 19);
  say(
    `${time} ${fault}, queue on ${backend}: ${missing} missing, ${repeated} repeated, ` +
      `${drainedSeconds.toFixed(1)} s, healthy within ${healthySeconds.toFixed(1)} s`,
  );
  sayProblems({ problems });
}

if (isLong) {
  const rows: Row[] = [];
  beforeAll(() => say(`chaos, seed ${seed}`));
  afterAll(() => {
    rows.sort((a, b) => (a.backend < b.backend ? -1 : a.backend > b.backend ? 1 : 0));
    say(`\nseed ${seed}\n${ledgerTable(rows)}`);
    reportFigure('chaos', `seed ${seed}: ${ledgerSummary(rows)}`);
  });

  const chosen = FAULTS.filter(({ name }) => name.includes(only));
  describe.each([false, true])('through proxies: %s', (byProxy) => {
    const faults = chosen.filter((fault) => (fault.byProxy ?? false) === byProxy);
    if (faults.length === 0) return;
    // Both back ends run concurrently, because most of a fault is waiting.
    let worlds: { world: World; random: SeededRandom }[] = [];
    beforeAll(async () => {
      worlds = await Promise.all(backends.map((backend) => openSeededWorld(backend, byProxy)));
    });
    afterAll(() => Promise.all(worlds.map(({ world }) => world.close())));

    test.each(faults)(
      'no event is lost by the fault "$name"',
      async (fault) => {
        const reason = fault.leftOut?.() ?? null;
        if (reason !== null) {
          reportFigure('chaos', `left out: ${fault.name} (${reason})`);
          return say(`left out: ${fault.name}: ${reason}`);
        }
        const struck = worlds.filter(({ world }) => fault.only === undefined || fault.only === world.backend);
        const settled = await Promise.allSettled(
          struck.map(async ({ world, random }) => {
            const row = await strike(world, fault, random);
            rows.push(row);
            sayRow(row);
            return row;
          }),
        );
        for (const result of settled) {
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
    'no event is lost by the faults of the short form, on either queue',
    async () => {
      const rows = (await Promise.all(backends.map((backend) => strikeAll(backend, SHORT_FORM)))).flat();
      say(`chaos, seed ${seed}\n${ledgerTable(rows)}`);
      for (const row of rows) expectNothingLost(row);
    },
    FAULT_TIMEOUT_MS,
  );
}
