import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { FAULTS, type Fault } from './faults.ts';
import { createSeededRandom, type SeededRandom } from './seeded-random.ts';
import type { BackendName } from './servers.ts';
import { type Row, strike } from './strike.ts';
import { ledgerTable } from './table.ts';
import { openWorld, type World } from './world.ts';

/** `npm run chaos` sets CHAOS=long; CHAOS_SEED brings the moments of an earlier run back. */
const isLong = process.env.CHAOS === 'long';
const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
const only = process.env.CHAOS_ONLY ?? '';
/** Of the measurement, which is taken on a machine that does nothing else. */
const DRAINED_WITHIN_SECONDS = 60;
/** A net under what hangs. */
const FAULT_TIMEOUT_MS = 600_000;

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
  for (const problem of problems) say(`         ${problem}`);
}

if (isLong) {
  const rows: Row[] = [];
  beforeAll(() => say(`chaos, seed ${seed}`));
  afterAll(() => {
    rows.sort((a, b) => (a.backend < b.backend ? -1 : a.backend > b.backend ? 1 : 0));
    say(`\nseed ${seed}\n${ledgerTable(rows)}`);
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
        if (reason !== null) return say(`left out: ${fault.name}: ${reason}`);
        const struck = worlds.filter(({ world }) => fault.only === undefined || fault.only === world.backend);
        const settled = await Promise.all(
          struck.map(async ({ world, random }) => {
            const row = await strike(world, fault, random);
            rows.push(row);
            sayRow(row);
            return row;
          }),
        );
        for (const row of settled) {
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
    'nothing is lost when both services, the record and the queue are killed at once',
    async () => {
      const fault = FAULTS.find(({ name }) => name === 'all at once') as Fault;
      const rows = await Promise.all(
        backends.map(async (backend) => {
          const { world, random } = await openSeededWorld(backend, false);
          try {
            return await strike(world, fault, random);
          } finally {
            await world.close();
          }
        }),
      );
      say(`chaos, seed ${seed}\n${ledgerTable(rows)}`);
      for (const { problems } of rows) if (problems.length > 0) say(problems.join('\n'));
      for (const row of rows) expectNothingLost(row);
    },
    FAULT_TIMEOUT_MS,
  );
}
