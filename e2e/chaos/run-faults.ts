import { expect } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { FAULTS } from './faults.ts';
import { type Row, runFault } from './run-fault.ts';
import { createSeededRandom } from './seeded-random.ts';
import type { BackendName } from './servers.ts';
import { openWorld } from './world.ts';

/** CHAOS_SEED repeats the random choices of an earlier run. */
export const seed = Number(process.env.CHAOS_SEED ?? Date.now() % 1_000_000);
/**
 * Interval between two runs of the load in the short form, for half the load of the long form. A ledger requires 21
 * events of a fault, and more events cost CPU without a benefit.
 */
const RUN_INTERVAL_MS = 200;
/** Ends a test that hangs. */
export const FAULT_TIMEOUT_MS = 600_000;

export const backends: BackendName[] = ['PostgreSQL', ...(findRedisServer() ? (['Redis'] as const) : [])];

export function print(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function expectNothingLost(row: Row): void {
  expect(row.problems).toEqual([]);
  expect(row.missing).toBe(0);
  expect(row.delivered + row.failed + row.cancelled + row.unrecorded).toBe(row.expected);
  expect(row.published).toBeGreaterThan(20);
  expect(row.repeated).toBeLessThanOrEqual(row.inFlightAtKills);
}

export async function openSeededWorld(backend: BackendName, usesProxies: boolean) {
  const random = createSeededRandom(seed);
  return { random, world: await openWorld(backend, random, { usesProxies }) };
}

export function printProblems(row: Pick<Row, 'problems'> | undefined): void {
  for (const problem of (row?.problems ?? []).slice(0, 10)) print(`         ${problem}`);
}

/** Returns the rows of the named faults, which are injected one after another into one world. Throws if a fault does not end. */
export async function runFaults(backend: BackendName, names: readonly string[]): Promise<Row[]> {
  const { world, random } = await openSeededWorld(backend, false);
  const rows: Row[] = [];
  try {
    for (const fault of FAULTS.filter(({ name }) => names.includes(name))) {
      if (fault.only !== undefined && fault.only !== backend) continue;
      const reason = fault.skipReason?.() ?? null;
      if (reason !== null) {
        print(`skipped: ${fault.name}: ${reason}`);
        continue;
      }
      const row = await runFault(world, { runIntervalMs: RUN_INTERVAL_MS, ...fault }, random).catch(
        (cause: unknown) => {
          throw new Error(`seed ${seed}, queue on ${backend}, ${fault.name}: ${String(cause)}`, { cause });
        },
      );
      printProblems(row);
      rows.push(row);
    }
  } finally {
    await world.close();
  }
  return rows;
}
