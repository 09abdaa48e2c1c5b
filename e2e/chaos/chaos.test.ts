import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { FAULTS, type Fault, faultsOf } from './faults.ts';
import { createSeededRandom } from './seeded-random.ts';
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
  expect(row.delivered + row.failed + row.cancelled).toBe(row.expected);
  expect(row.published).toBeGreaterThan(20);
  expect(row.repeated).toBeLessThanOrEqual(row.inFlightAtKills);
}

if (isLong) {
  const rows: Row[] = [];
  beforeAll(() => say(`chaos, seed ${seed}`));
  afterAll(() => say(`\nseed ${seed}\n${ledgerTable(rows)}`));

  describe.each(backends)('queue on %s', (backend) => {
    const random = createSeededRandom(seed);
    let world: World;
    beforeAll(async () => {
      world = await openWorld(backend, random);
    });
    afterAll(() => world.close());

    const faults = faultsOf(backend).filter(({ name }) => name.includes(only));
    test.each(faults)(
      'nothing is lost: $name',
      async (fault) => {
        say(`${new Date().toISOString().slice(11, 19)} queue on ${backend}: ${fault.name}`);
        const row = await strike(world, fault, random);
        rows.push(row);
        say(`         ${row.missing} missing, ${row.repeated} repeated, ${row.drainedSeconds.toFixed(1)} s`);
        for (const problem of row.problems) say(`         ${problem}`);
        expectNothingLost(row);
        expect(row.drainedSeconds).toBeLessThan(DRAINED_WITHIN_SECONDS);
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
          const random = createSeededRandom(seed);
          const world = await openWorld(backend, random);
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
