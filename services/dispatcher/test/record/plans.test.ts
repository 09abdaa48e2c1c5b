import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createId, deliveryIdFor, idDay } from '@runhook/contract';
import { ensureDayPartitions, openDatabase } from '@runhook/database';
import { createTestDatabase, EXAMPLE_JOB, exampleEvent, type TestDatabase } from '@runhook/testing';
import { loadAccountVersions, loadSubscriptions } from '../../src/record/accounts.ts';
import { recordAttempts } from '../../src/record/attempts.ts';
import { loadDeliveries } from '../../src/record/deliveries.ts';
import { eventStates } from '../../src/record/event-states.ts';
import { commitResults } from '../log-rows.ts';

/** Of the statements that read subscriptions at all. */
const READS_OF_SUBSCRIPTIONS: Record<string, number> = {
  'account-versions': 1,
  'load-deliveries': 1,
  'load-subscriptions': 1,
};

/** Of an event that is delivered at the first attempt: reported over REST, or published. */
const USUAL = ['claim-events', 'insert-events'];

/** In an index of the log by (day, id, account_id): the whole day of an account, of which a join throws away all but a row. */
const WHOLE_DAY = /Index Cond: \(\(day = [^()]+\) AND \(account_id = [^()]+\)\)$/m;

let testDatabase: TestDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  const { pool, close } = openDatabase({ url: testDatabase.url });
  await ensureDayPartitions(pool);
  await close();
});
afterAll(() => testDatabase.drop());

interface Prepared {
  name: string;
  /** Times that it was planned for its values alone. */
  replanned: string;
  plan: string;
}

/** The statements of an event and its deliveries, as a connection that is new prepares them. */
async function prepareAll(): Promise<Prepared[]> {
  // One connection: prepared statements are its own.
  const { pool, close } = openDatabase({ url: testDatabase.url, connectionsMax: 1, plansByIndex: true });
  try {
    await loadAccountVersions(pool, [1]);
    await loadSubscriptions(pool, ['wsu_x']);
    // Of an account that there is not, so that each statement is asked and none commits.
    const event = exampleEvent('job.run.started', { ...EXAMPLE_JOB, account_id: 1 });
    const id = deliveryIdFor(event.eventId, 'wsu_x');
    const delivery = { id, subscriptionId: 'wsu_x', webhookName: 'x', isParked: false };
    const recorded = { event, version: '1', deliveries: [delivery], isRecorded: true };
    const inserted = { ...recorded, event: { ...event, eventId: createId('event') }, isRecorded: false };
    expect(await commitResults(pool, [recorded, inserted])).toEqual(['outdated', 'outdated']);
    await eventStates(pool, []);
    await recordAttempts(pool, []);
    const key = { deliveryId: 'wdl_000000000000000000000000000', accountId: 1 };
    await loadDeliveries(pool, [key]);
    const { rows } = await pool.query<{ name: string; parameters: number; replanned: string }>(
      `SELECT name, cardinality(parameter_types) AS parameters, custom_plans AS replanned
       FROM pg_prepared_statements ORDER BY name`,
    );
    const prepared: Prepared[] = [];
    for (const { name, parameters, replanned } of rows) {
      const nothing = Array.from({ length: parameters }, () => "'{}'").join(', ');
      const explained = await pool.query<{ 'QUERY PLAN': string }>(`EXPLAIN EXECUTE "${name}"(${nothing})`);
      prepared.push({ name, replanned, plan: explained.rows.map((row) => row['QUERY PLAN']).join('\n') });
    }
    return prepared;
  } finally {
    await close();
  }
}

test('what a statement prepared at an empty table does later reads no whole table', async () => {
  const prepared = await prepareAll();
  // Left to itself PostgreSQL plans the first calls one by one, and small batches always.
  expect(prepared.filter(({ replanned }) => replanned !== '0')).toEqual([]);
  expect(prepared.map(({ name }) => name)).toEqual([
    'account-versions',
    'claim-events',
    'event-states',
    'insert-events',
    'load-deliveries',
    'load-subscriptions',
    'record-attempts',
  ]);
  for (const { name, plan } of prepared) {
    expect(plan).toMatch(/deliveries|accounts/);
    expect(plan).not.toMatch(/Seq Scan/);
    expect(plan).not.toMatch(WHOLE_DAY);
    // Those of the usual way are planned over no day at all, however long the log is: only what they insert finds its own.
    if (USUAL.includes(name)) expect(plan).not.toMatch(/(events|deliveries|attempts)_(\d{8}|default)/);
    // However many subscriptions an account has: each is read once to load it, and none to see whether it changed.
    const reads = plan.match(/ on subscriptions/g) ?? [];
    expect({ name, reads: reads.length }).toEqual({ name, reads: READS_OF_SUBSCRIPTIONS[name] ?? 0 });
  }
});

// As after midnight: a minute or more passes before PostgreSQL has statistics of a day, and without any it takes an account for a row.
test.each([60, 250, 3_000])(
  'nor does one of a day with %i events that nobody has analysed',
  async (count) => {
    const { pool, close } = openDatabase({ url: testDatabase.url });
    try {
      await pool.query('TRUNCATE events, deliveries');
      await pool.query(INSERT_EVENTS, [idDay('event', createId('event')), count]);
      await pool.query(INSERT_DELIVERIES);
    } finally {
      await close();
    }
    for (const { name, plan } of await prepareAll()) {
      expect({ name, plan }).not.toEqual({ name, plan: expect.stringMatching(WHOLE_DAY) });
      expect(plan).not.toMatch(/Seq Scan/);
    }
  },
);

const INSERT_EVENTS = `
  INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
  SELECT $1::date, 'wev_' || n, 1, 'job.run.started', 0, '{}', now() FROM generate_series(1, $2::int) AS n`;
const INSERT_DELIVERIES = `
  INSERT INTO deliveries (day, id, account_id, subscription_id, webhook_name, event_id, event_type, status, trigger,
    cycle, attempt_count, created_at, job_id, run_id)
  SELECT day, 'wdl_' || e.id || n, account_id, 'wsu_' || n, 'x', e.id, event_type, 'pending', 'automatic', 0, 0, now(), 1, 1
  FROM events e, generate_series(1, 3) AS n`;
