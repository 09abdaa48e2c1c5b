import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { reportFigure } from '../proof-figures.ts';
import { drained, queuesEmpty } from './drained.ts';
import { reckon } from './ledger.ts';
import { startLoad } from './load.ts';
import { migrateTo } from './migrate-to.ts';
import { startReleaseClient } from './release-client.ts';
import { createSeededRandom } from './seeded-random.ts';
import type { BackendName } from './servers.ts';
import type { Row } from './strike.ts';
import { ledgerSummary, ledgerTable } from './table.ts';
import { openWorld, type World } from './world.ts';

/** Folder of the previous release, which `npm run upgrade` has built. */
const OLDER = process.env.UPGRADE_FROM ?? '';
const NEWER = fileURLToPath(new URL('../..', import.meta.url));
/** Time under load in each state of the system. */
const UNDER_LOAD_MS = 3_000;
const DRAIN_TIMEOUT_MS = 240_000;

const backends: BackendName[] = ['PostgreSQL', ...(findRedisServer() ? (['Redis'] as const) : [])];

test('an upgrade and its reversal lose and repeat no event', async () => {
  // Both run to their end, so that all processes are stopped before a failure fails the test.
  const ended = await Promise.allSettled(backends.map(upgrade));
  const rows = ended.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
  process.stderr.write(`${ledgerTable(rows)}\n`);
  reportFigure('upgrade', ledgerSummary(rows));
  for (const row of rows) {
    expect(row.problems).toEqual([]);
    expect(row).toMatchObject({ missing: 0, repeated: 0, refusedCalls: 0 });
    expect(row.published).toBeGreaterThan(50);
  }
}, 900_000);

/** Runs the previous release, the migration, this release process by process, and the previous release again, all under load. */
async function upgrade(backend: BackendName): Promise<Row> {
  const world = await openWorld(backend, createSeededRandom(1), { checkout: OLDER });
  const client = await startReleaseClient(OLDER, world);
  const say = (text: string) => process.stderr.write(`queue on ${backend}: ${text}\n`);
  try {
    const load = await startLoad(world, { publishesDirectly: true, repeatsCalls: false, client });
    const steps: [name: string, step: () => Promise<unknown>][] = [
      ['the previous release', async () => undefined],
      ['migrated', () => migrateTo(world)],
      ['rolled to this release', () => roll(world, NEWER)],
      ['a subscription made inactive', () => load.leave()],
      ['rolled back', () => roll(world, OLDER)],
    ];
    for (const [name, step] of steps) {
      await step();
      await wait(UNDER_LOAD_MS);
      say(`${name}: ${load.accepted.size} events accepted, ${load.refusedCalls} calls rejected`);
    }
    await load.stop();
    const stoppedAt = performance.now();
    await drained(world, load, DRAIN_TIMEOUT_MS);
    const drainedSeconds = (performance.now() - stoppedAt) / 1_000;
    await queuesEmpty(world, DRAIN_TIMEOUT_MS);
    const ledger = await reckon(world, load);
    return { backend, fault: 'upgrade and back', refusedCalls: load.refusedCalls, drainedSeconds, ...ledger };
  } finally {
    await client.close();
    await world.close();
  }
}

/**
 * Replaces each process as a rolling update does: starts a new one, and stops the old one when the new one is ready. It must exit
 * with 0 after finishing its work in flight.
 */
async function roll(world: World, checkout: string): Promise<void> {
  const before = world.management;
  await world.startManagement(checkout);
  expect(await before.stop()).toBe(0);
  for (const [index, dispatcher] of world.dispatchers.entries()) {
    await world.startDispatcher(index, { checkout });
    expect(await dispatcher.stop()).toBe(0);
  }
}
