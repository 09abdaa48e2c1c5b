import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { findRedisServer } from '@runhook/embedded';
import { eventually } from '@runhook/testing';
import { reportFigure } from '../proof-figures.ts';
import { createLedger } from './ledger.ts';
import { type Load, startLoad } from './load.ts';
import { migrateTo } from './migrate-to.ts';
import { startReleaseClient } from './release-client.ts';
import type { Row } from './run-fault.ts';
import { createSeededRandom } from './seeded-random.ts';
import type { BackendName } from './servers.ts';
import { formatLedgerSummary, formatLedgerTable } from './table.ts';
import { waitUntilDrained, waitUntilQueuesEmpty } from './wait-until-drained.ts';
import { openWorld, type World } from './world.ts';

/** Folder of the previous release, which `npm run upgrade` has built. */
const OLDER_CHECKOUT = process.env.UPGRADE_FROM ?? '';
const NEWER_CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
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
  process.stderr.write(`${formatLedgerTable(rows)}\n`);
  reportFigure('upgrade', formatLedgerSummary(rows));
  for (const row of rows) {
    expect(row.problems).toEqual([]);
    expect(row).toMatchObject({ missing: 0, repeated: 0, failedCalls: 0 });
    expect(row.published).toBeGreaterThan(50);
  }
}, 900_000);

/** Runs the previous release, the migration, this release process by process, and the previous release again, all under load. */
async function upgrade(backend: BackendName): Promise<Row> {
  const world = await openWorld(backend, createSeededRandom(1), { checkout: OLDER_CHECKOUT });
  const client = await startReleaseClient(OLDER_CHECKOUT, world);
  const print = (text: string) => process.stderr.write(`queue on ${backend}: ${text}\n`);
  try {
    const load = await startLoad(world, { publishesDirectly: true, repeatsCalls: false, client });
    const token = await client.createToken(load.accountId);
    const steps: [name: string, step: () => Promise<unknown>][] = [
      ['the previous release', async () => undefined],
      ['migrated', () => migrateTo(world)],
      ['management of this release', () => rollManagement(world, NEWER_CHECKOUT)],
      [
        'a delivery option rejected',
        async () => expect(await createWithFormat(world, load, token)).toBe(409),
      ],
      ['dispatchers of this release', () => rollDispatchers(world, NEWER_CHECKOUT)],
      [
        'a delivery option accepted',
        () => eventually(async () => expect(await createWithFormat(world, load, token)).toBe(201)),
      ],
      ['a subscription made inactive', () => load.deactivateLeaving()],
      [
        'rolled back',
        async () => {
          await rollManagement(world, OLDER_CHECKOUT);
          await rollDispatchers(world, OLDER_CHECKOUT);
        },
      ],
    ];
    for (const [name, step] of steps) {
      await step();
      await wait(UNDER_LOAD_MS);
      print(`${name}: ${load.accepted.size} events accepted, ${load.failedCalls} calls rejected`);
    }
    await load.stop();
    const stoppedAt = performance.now();
    await waitUntilDrained(world, load, DRAIN_TIMEOUT_MS);
    const drainedSeconds = (performance.now() - stoppedAt) / 1_000;
    await waitUntilQueuesEmpty(world, DRAIN_TIMEOUT_MS);
    const ledger = await createLedger(world, load);
    return { backend, fault: 'upgrade and back', failedCalls: load.failedCalls, drainedSeconds, ...ledger };
  } finally {
    await client.close();
    await world.close();
  }
}

/*
 * A rolling update replaces each process: it starts a new one, and stops the old one when the new one is ready. The old one must exit
 * with 0 after finishing its work in flight.
 */

async function rollManagement(world: World, checkout: string): Promise<void> {
  const before = world.management;
  await world.startManagement(checkout);
  expect(await before.stop()).toBe(0);
}

async function rollDispatchers(world: World, checkout: string): Promise<void> {
  for (const [index, dispatcher] of world.dispatchers.entries()) {
    await world.startDispatcher(index, { checkout });
    expect(await dispatcher.stop()).toBe(0);
  }
}

/** Returns the status of the response to the creation of an inactive webhook that older dispatchers do not support. */
async function createWithFormat({ management }: World, { accountId }: Load, token: string): Promise<number> {
  const response = await fetch(`${management.url}/api/v3/accounts/${accountId}/webhooks/subscriptions`, {
    method: 'POST',
    headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Slack',
      event_types: ['job.run.errored'],
      client_url: 'https://hooks.slack.com/services/T0/B0/x',
      format: 'slack',
      active: false,
    }),
  });
  const body = await response.text();
  if (response.status === 409) expect(body).toContain('A dispatcher of an older release is running');
  return response.status;
}
