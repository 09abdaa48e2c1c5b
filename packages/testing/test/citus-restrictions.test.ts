import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Database, openDatabase } from '@runhook/database';
import { createTestDatabase, findCitusRestrictions, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: Database;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openDatabase({ url: testDatabase.url });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

const INPUT = 'WITH i AS MATERIALIZED (SELECT * FROM unnest($1::bigint[]) AS u (a))';

/** Citus 13.0.3 rejected each of these statements. */
const REJECTED: [reason: string, text: string][] = [
  [
    'a sub-select has no columns: write SELECT 1 FROM',
    `SELECT i.a, EXISTS (SELECT FROM accounts WHERE id = 1)
     FROM unnest($1::bigint[]) AS i (a) LEFT JOIN events e ON e.account_id = i.a`,
  ],
  [
    'json_each returns a record without named columns',
    `WITH i AS MATERIALIZED (SELECT a, json_each('{"x":1}') AS r FROM unnest($1::bigint[]) AS u (a))
     SELECT i.a, i.r FROM i LEFT JOIN events e ON e.account_id = i.a`,
  ],
  [
    'CASE or coalesce calls now, which is not immutable',
    `${INPUT} UPDATE deliveries d SET next_attempt_at = CASE WHEN i.a > 1 THEN now() END FROM i WHERE d.account_id = i.a`,
  ],
  [
    'CASE or coalesce calls now, which is not immutable',
    'UPDATE deliveries SET next_attempt_at = coalesce(next_attempt_at, now()) WHERE account_id = $1',
  ],
  [
    'UPDATE calls random, which is volatile',
    'UPDATE deliveries SET reason = random()::text WHERE account_id = $1',
  ],
  ['DELETE calls random, which is volatile', 'DELETE FROM events WHERE account_id = $1 AND random() < 0.5'],
  [
    'UPDATE calls timestamptz_pl_interval, which is stable, with a column',
    `UPDATE deliveries SET next_attempt_at = now() + attempt_count * interval '1 s' WHERE account_id = $1`,
  ],
  [
    'RETURNING calls now, which is not immutable',
    'DELETE FROM events WHERE account_id = $1 RETURNING now() - created_at',
  ],
  [
    'ON CONFLICT calls now, which is not immutable',
    `INSERT INTO events (day, id, account_id, event_type, timestamp, data) VALUES ('2026-01-31', 'x', $1, 'x', '1', '[]')
     ON CONFLICT (day, id, account_id) DO UPDATE SET created_at = now()`,
  ],
  [
    'FOR UPDATE locks rows of several accounts',
    'SELECT id FROM deliveries WHERE account_id = ANY ($1) FOR UPDATE',
  ],
  [
    'ctid of a distributed table',
    'DELETE FROM deliveries WHERE ctid IN (SELECT ctid FROM deliveries WHERE account_id = $1 LIMIT 5)',
  ],
  [
    'a recursion reads rows of several accounts',
    `WITH RECURSIVE t AS (SELECT account_id FROM deliveries UNION SELECT account_id + 1 FROM t WHERE account_id < 3)
     SELECT * FROM t`,
  ],
  [
    'a lateral sub-select has a LIMIT',
    `${INPUT} SELECT * FROM i CROSS JOIN LATERAL (SELECT id FROM deliveries d WHERE d.account_id = i.a LIMIT 1) x`,
  ],
  [
    'a correlated sub-select reads a distributed table for rows of a function, a CTE or a sub-select',
    `${INPUT} SELECT a FROM i WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.account_id = i.a)`,
  ],
];

test.each(REJECTED)('findCitusRestrictions() reports "%s" for the statement %s', async (reason, text) => {
  expect(await findCitusRestrictions(database.pool, text)).toContain(reason);
});

/** Citus 13.0.3 accepted each of these statements. */
const ACCEPTED = [
  `SELECT i.a, EXISTS (SELECT 1 FROM accounts WHERE id = 1)
   FROM unnest($1::bigint[]) AS i (a) LEFT JOIN events e ON e.account_id = i.a`,
  'UPDATE deliveries SET next_attempt_at = now() WHERE account_id = $1',
  `DELETE FROM events WHERE account_id = $1 AND created_at < now() - interval '1 day'`,
  `DELETE FROM events WHERE account_id = $1 RETURNING id || 'x'`,
  'SELECT id FROM deliveries WHERE account_id = $1 AND id = ANY ($2) FOR UPDATE',
  `WITH RECURSIVE t AS (
     SELECT account_id FROM deliveries WHERE account_id = $1 UNION SELECT account_id + 1 FROM t WHERE account_id < 3)
   SELECT * FROM t`,
  'SELECT * FROM unnest($1::bigint[]) AS i (a) CROSS JOIN LATERAL (SELECT id FROM deliveries d WHERE d.account_id = i.a) x',
  `${INPUT} UPDATE deliveries d SET reason = 'x' FROM i WHERE d.account_id = i.a
     AND EXISTS (SELECT 1 FROM events e WHERE e.account_id = d.account_id AND e.id = d.event_id)`,
  `${INPUT} INSERT INTO events (day, id, account_id, event_type, timestamp, data, created_at)
     SELECT '2026-01-31', 'x', a, 'x', '1', '[]', CASE WHEN a > 1 THEN now() ELSE now() END FROM i`,
];

test.each(ACCEPTED)(
  'findCitusRestrictions() reports nothing for a statement that Citus accepts: %s',
  async (text) => {
    expect(await findCitusRestrictions(database.pool, text)).toEqual([]);
  },
);

test('findCitusRestrictions() reports nothing for a statement that reads no distributed table', async () => {
  expect(
    await findCitusRestrictions(database.pool, 'SELECT EXISTS (SELECT FROM accounts) FOR UPDATE'),
  ).toEqual([]);
});
