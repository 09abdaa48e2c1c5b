import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { reportFigure } from '../proof-figures.ts';
import { FAULTS, type Fault } from './faults.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';
import type { BackendName } from './servers.ts';
import { type Row, strike } from './strike.ts';
import { ledgerSummary, ledgerTable } from './table.ts';
import { isLong, openWorld, type World } from './world.ts';

/** CHAOS_SEED brings the moments of an earlier run back. */
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const only = process.env.CHAOS_ONLY ?? '';
/** Of the measurement, which is taken on a machine that does nothing else. */
const DRAINED_WITHIN_SECONDS = 60;
/** A net under what hangs. */
const FAULT_TIMEOUT_MS = 600_000;

/** What `npm test` strikes with: the faults whose waits are short. */
const SHORT_FORM = new Set([
  'all at once',
  'PostgreSQL takes no writes',
  'the disk of the log is full',
  "another account's path on the host hangs",
  "another account's texts are what stores reject, then PostgreSQL, Redis and a dispatcher are killed",
  'a default partition has grown',
]);

const backends: BackendName[] = ['PostgreSQL', ...(findRedisServer() ? (['Redis'] as const) : [])];

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function expectNothingLost(row: Row): void {
  expect(row.problems).toEqual([]);
  expect(row.missing).toBe(0);
  expect(row.delivered + row.failed + row.cancelled + row.unrecorded).toBe(row.expected);
  expect(row.published).toBeGreaterThan(20);
  expect(row.repeated).toBeLessThanOrEqual(row.inFlightAtKills);
}

async function openSeededWorld(backend: BackendName, byProxy: boolean) {
  const random = createSeededRandom(seed);
  return { random, world: await openWorld(backend, random, { byProxy }) };
}

function sayRow({ backend, fault, missing, repeated, drainedSeconds, problems }: Row): void {
  const time = new Date().toISOString().slice(11, 19);
  say(
    `${time} ${fault}, queue on ${backend}: ${missing} missing, ${repeated} repeated, ${drainedSeconds.toFixed(1)} s`,
  );
  sayProblems({ problems });
}

function sayProblems(row: Pick<Row, 'problems'> | undefined): void {
  for (const problem of (row?.problems ?? []).slice(0, 10)) say(`         ${problem}`);
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
  describe.each([false, true])('by way of proxies: %s', (byProxy) => {
    const faults = chosen.filter((fault) => (fault.byProxy ?? false) === byProxy);
    if (faults.length === 0) return;
    // What is waited for is mostly time, so that both back ends wait together.
    let worlds: { world: World; random: SeededRandom }[] = [];
    beforeAll(async () => {
      worlds = await Promise.all(backends.map((backend) => openSeededWorld(backend, byProxy)));
    });
    afterAll(() => Promise.all(worlds.map(({ world }) => world.close())));

    test.each(faults)(
      'nothing is lost: $name',
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
  // What is waited for is mostly time, so that both back ends wait together.
  test(
    'nothing is lost by the faults of the short form',
    async () => {
      const faults = FAULTS.filter(({ name }) => SHORT_FORM.has(name));
      const rows = await Promise.all(backends.map((backend) => strikeAll(backend, faults)));
      say(`chaos, seed ${seed}\n${ledgerTable(rows.flat())}`);
      for (const row of rows.flat()) expectNothingLost(row);
    },
    FAULT_TIMEOUT_MS,
  );
}

function failed(backend: BackendName, { name }: Fault, cause: unknown): never {
  throw new Error(`seed ${seed}, queue on ${backend}, ${name}: ${String(cause)}`, { cause });
}

async function strikeAll(backend: BackendName, faults: readonly Fault[]): Promise<Row[]> {
  const { world, random } = await openSeededWorld(backend, false);
  const rows: Row[] = [];
  try {
    for (const fault of faults) {
      if (fault.only !== undefined && fault.only !== backend) continue;
      const reason = fault.leftOut?.() ?? null;
      if (reason !== null) say(`left out: ${fault.name}: ${reason}`);
      else
        rows.push(
          await strike(world, fault, random).catch((error: unknown) => failed(backend, fault, error)),
        );
      sayProblems(rows.at(-1));
    }
  } finally {
    await world.close();
  }
  return rows;
}
