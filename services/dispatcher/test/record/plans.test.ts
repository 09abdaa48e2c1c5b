import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createId, deliveryIdFor } from '@runhook/contract';
import { type Database, ensureDayPartitions, openDatabase } from '@runhook/database';
import { createTestDatabase, EXAMPLE_JOB, exampleEvent, type TestDatabase } from '@runhook/testing';
import { loadAccountSubscriptions } from '../../src/record/accounts.ts';
import { recordAttempts } from '../../src/record/attempts.ts';
import { commitFanOut } from '../../src/record/commit-fan-out.ts';
import { loadDeliveries } from '../../src/record/deliveries.ts';
import { eventStates } from '../../src/record/open-events.ts';

/** Of the statements that read subscriptions at all. */
const READS_OF_SUBSCRIPTIONS: Record<string, number> = {
  'load-account-subscriptions': 1,
  'load-deliveries': 1,
};

/** Of an event that is delivered at the first attempt: reported over REST, or published. */
const USUAL = ['claim-stored', 'commit-new'];

let testDatabase: TestDatabase;
let database: Database;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  // One connection: prepared statements are its own.
  database = openDatabase({ url: testDatabase.url, connectionsMax: 1, plansByIndex: true });
  await ensureDayPartitions(database.pool);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

test('what a statement prepared at an empty table does later reads no whole table', async () => {
  const { pool } = database;
  await loadAccountSubscriptions(pool, [1]);
  // Of an account that there is not, so that each statement is asked and none commits.
  const event = exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: 1 });
  const id = deliveryIdFor(event.eventId, 'wsu_x');
  const delivery = { id, subscriptionId: 'wsu_x', webhookName: 'x', isParked: false };
  const stored = { event, version: '1', deliveries: [delivery], isStored: true };
  const paged = { ...stored, event: { ...event, eventId: createId('event') }, deliveries: [], isPaged: true };
  expect(await commitFanOut(pool, [stored, paged])).toEqual(['outdated', 'outdated']);
  await eventStates(pool, []);
  await recordAttempts(pool, []);
  await loadDeliveries(pool, [{ deliveryId: 'wdl_000000000000000000000000000', accountId: 1 }]);
  const { rows: prepared } = await pool.query<{ name: string; parameters: number; replanned: string }>(
    `SELECT name, cardinality(parameter_types) AS parameters, custom_plans AS replanned
     FROM pg_prepared_statements ORDER BY name`,
  );
  // Left to itself PostgreSQL plans the first calls one by one, and small batches always.
  expect(prepared.filter(({ replanned }) => replanned !== '0')).toEqual([]);
  expect(prepared.map(({ name }) => name)).toEqual([
    'claim-open',
    'claim-stored',
    'commit-new',
    'event-states',
    'load-account-subscriptions',
    'load-deliveries',
    'record-attempts',
  ]);
  for (const { name, parameters } of prepared) {
    const nothing = Array.from({ length: parameters }, () => "'{}'").join(', ');
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE "${name}"(${nothing})`);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toMatch(/deliveries|accounts/);
    expect(plan).not.toMatch(/Seq Scan/);
    // Those of the usual way are planned over no day at all, however long the log is: only what they insert finds its own.
    if (USUAL.includes(name)) expect(plan).not.toMatch(/(events|deliveries|attempts)_(\d{8}|default)/);
    // However many subscriptions an account has: each is read once to load it, and none to see whether it changed.
    const reads = plan.match(/ on subscriptions/g) ?? [];
    expect({ name, reads: reads.length }).toEqual({ name, reads: READS_OF_SUBSCRIPTIONS[name] ?? 0 });
  }
});
