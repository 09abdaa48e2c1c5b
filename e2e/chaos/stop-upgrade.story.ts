import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createId, idDay } from '@runhook/contract';
import { findRedisServer } from '@runhook/embedded';
import { reportFigure } from '../proof-figures.ts';
import { runKey } from './endpoint.ts';
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

/** Folder of the previous release, which `npm run upgrade -- --stop` has built. */
const OLDER_CHECKOUT = process.env.UPGRADE_FROM ?? '';
/** Time under load in each state of the system. */
const UNDER_LOAD_MS = 3_000;
const DRAIN_TIMEOUT_MS = 240_000;
/** Half of a surrogate pair, and NUL. PostgreSQL stores both in a column of type json, and rejects every read of a field of it. */
const POISON = JSON.stringify('cut \ud83d \u0000').slice(1, -1);
const UNDISPATCHED = 10;
/** Run id of the first undispatched event with such a text. */
const POISONED_FROM = 2_000_001;

const backends: BackendName[] = ['PostgreSQL', ...(findRedisServer() ? (['Redis'] as const) : [])];

test('an upgrade for which the services are stopped loses no event, although the log has unreadable text and PostgreSQL crashed', async () => {
  // Both run to their end, so that all processes are stopped before a failure fails the test.
  const ended = await Promise.allSettled(backends.map(upgradeWithStop));
  const rows = ended.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
  process.stderr.write(`${formatLedgerTable(rows)}\n`);
  reportFigure('upgrade stop', formatLedgerSummary(rows));
  for (const row of rows) {
    expect(row.problems).toEqual([]);
    expect(row).toMatchObject({ missing: 0 });
    expect(row.published).toBeGreaterThan(50);
  }
}, 900_000);

/**
 * Stops the previous release, crashes PostgreSQL, migrates and starts this release. A publisher of the previous release adds jobs
 * to the queue all the time; calls over REST fail while management is stopped.
 */
async function upgradeWithStop(backend: BackendName): Promise<Row> {
  const world = await openWorld(backend, createSeededRandom(1), { checkout: OLDER_CHECKOUT });
  const client = await startReleaseClient(OLDER_CHECKOUT, world);
  const print = (text: string) => process.stderr.write(`queue on ${backend}: ${text}\n`);
  try {
    const load = await startLoad(world, { publishesDirectly: true, repeatsCalls: false, client });
    const token = await client.createToken(load.accountId);
    let poisonedRuns: string[] = [];
    const steps: [name: string, step: () => Promise<unknown>][] = [
      ['the previous release', async () => undefined],
      // The dispatchers are stopped first, so that management commits events that no dispatcher has seen when PostgreSQL crashes.
      ['dispatchers stopped', () => stopDispatchers(world)],
      ['management stopped', async () => expect(await world.management.stop()).toBe(0)],
      ['unreadable text stored', async () => (poisonedRuns = await insertPoisonedRuns(world, load))],
      ['PostgreSQL crashed', () => crashPostgres(world)],
      ['migrated', () => migrateTo(world)],
      ['this release started', () => startAll(world)],
      ['a subscription made inactive', () => load.deactivateLeaving()],
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
    ledger.problems.push(...(await findUnreadableRuns(world, load, token, poisonedRuns)));
    return {
      backend,
      fault: 'upgrade with a stop',
      failedCalls: load.failedCalls,
      drainedSeconds,
      ...ledger,
    };
  } finally {
    await client.close();
    await world.close();
  }
}

async function stopDispatchers({ dispatchers }: World): Promise<void> {
  expect(await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()))).toEqual([0, 0]);
}

async function crashPostgres({ servers }: World): Promise<void> {
  await servers.killPostgres();
  await servers.restartPostgres();
}

async function startAll(world: World): Promise<void> {
  await Promise.all([world.startManagement(), world.startDispatcher(0), world.startDispatcher(1)]);
}

/** Index of the run in the data of an event, as the previous release stores it. */
const RUN_INDEX = 2;
const POISON_RECORDED = `
  UPDATE events e SET data = replace(data::text, 'Model orders failed', $2)::json
  WHERE account_id = $1 AND event_type = 'job.run.errored'
    AND NOT EXISTS (SELECT 1 FROM open_events o WHERE o.event_id = e.id AND o.account_id = e.account_id)
  RETURNING id, data::text AS data`;
const INSERT_UNDISPATCHED = `
  WITH event AS (
    INSERT INTO events (day, id, account_id, event_type, "timestamp", data)
    SELECT $1::date, $2, account_id, event_type, "timestamp", $4::json FROM events WHERE id = $3
    RETURNING day, id, account_id)
  INSERT INTO open_events (day, event_id, account_id) SELECT day, id, account_id FROM event`;

/**
 * Writes unreadable text into rows of events in the format of the previous release: into those of dispatched events,
 * and into those of additional undispatched ones. Returns the ids of the runs of both.
 */
async function insertPoisonedRuns({ database }: World, { accountId, accepted }: Load): Promise<string[]> {
  const { rows } = await database.pool.query<{ id: string; data: string }>(POISON_RECORDED, [
    accountId,
    POISON,
  ]);
  const [example] = rows;
  if (example === undefined) throw new Error('no event was dispatched before the stop');
  const runs = rows.map(({ data }) => String((JSON.parse(data) as unknown[])[RUN_INDEX]));
  for (let runId = POISONED_FROM; runId < POISONED_FROM + UNDISPATCHED; runId += 1) {
    const data = JSON.parse(example.data) as unknown[];
    data[RUN_INDEX] = runId;
    const id = createId('event');
    const values = [idDay('event', id), id, example.id, JSON.stringify(data)];
    await database.pool.query(INSERT_UNDISPATCHED, values);
    accepted.set(runKey(runId, 'job.run.errored'), Date.now());
    runs.push(String(runId));
  }
  return runs;
}

/** Returns a sentence with the response for each run whose events management cannot show. */
async function findUnreadableRuns(
  { management }: World,
  { accountId }: Load,
  token: string,
  runs: readonly string[],
): Promise<string[]> {
  const problems: string[] = [];
  for (const run of runs) {
    const path = `/api/v3/accounts/${accountId}/webhooks/run/${run}/events`;
    const response = await fetch(`${management.url}${path}`, {
      headers: { authorization: `Token ${token}` },
    });
    const body = await response.text();
    if (response.status !== 200 || /\\ud83d(?!\\ude)|\\u0000/i.test(body))
      problems.push(`GET ${path} returned ${response.status}: ${body.slice(0, 200)}`);
  }
  return problems;
}
