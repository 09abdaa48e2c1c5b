import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, seedSubscription, type TestDatabase } from '@runhook/testing';
import { drawTokens, settleTokens } from '../../src/record/rate-buckets.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let accountId: number;
let id: string;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
  accountId = (await seedAccount(database)).id;
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(async () => {
  ({ id } = await seedSubscription(database, { accountId, clientUrl: 'https://a.example' }));
});

const limitTo = (rate: number | null) =>
  database.pool.query('UPDATE subscriptions SET rate_limit = $2 WHERE id = $1', [id, rate]);
const draw = (max: number) => drawTokens(database.pool, id, max);
const settle = (unused: number, hasWaited = false) => settleTokens(database.pool, id, { unused, hasWaited });

/** Replaces the state of the bucket; `secondsAgo` is the age of its tokens. */
const setBucket = (tokens: number, secondsAgo: number) =>
  database.pool.query(
    `UPDATE rate_buckets SET tokens = $2, limited_at = NULL, updated_at = now() - $3 * interval '1 second'
     WHERE subscription_id = $1`,
    [id, tokens, secondsAgo],
  );

async function readBucket(): Promise<Record<string, unknown> | undefined> {
  const { rows } = await database.pool.query(
    `SELECT tokens, updated_at <= clock_timestamp() AS "isPast", limited_at IS NOT NULL AS "isLimited"
     FROM rate_buckets WHERE subscription_id = $1`,
    [id],
  );
  return rows[0];
}

test('a subscription without a limit has no bucket', async () => {
  expect(await draw(3)).toBeNull();
  expect(await readBucket()).toBeUndefined();
});

test('a bucket is full at first', async () => {
  // The refill of an hour is 0.36 tokens.
  await limitTo(0.0001);
  expect(await draw(3)).toMatchObject({ count: 1, rate: 0.0001 });
  expect(await draw(3)).toMatchObject({ count: 0 });
  await limitTo(7);
  await setBucket(0, 3_600);
  expect(await draw(100)).toMatchObject({ count: 7, rate: 7 });
});

test('concurrent draws, of which one creates the bucket, get each token once', async () => {
  await limitTo(0.0001);
  const draws = await Promise.all(Array.from({ length: 8 }, () => draw(1)));
  expect(draws.map((drawn) => drawn?.count).sort()).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
});

test('a bucket refills with the time since its latest draw, a little slower than the limit', async () => {
  await limitTo(0.1);
  await draw(1);
  await setBucket(0.1, 6.1);
  const drawn = await draw(1);
  expect(drawn?.count).toBe(0);
  expect(drawn?.left).toBeGreaterThanOrEqual(0.7);
});

test('a clock that was set back adds no tokens, and the bucket continues from the new time', async () => {
  await limitTo(5);
  await draw(1);
  await setBucket(3, -3_600);
  expect(await draw(1)).toMatchObject({ count: 1, left: 2 });
  expect(await readBucket()).toMatchObject({ tokens: 2, isPast: true });
});

test('a change of the limit applies to the next draw', async () => {
  await limitTo(500);
  await draw(1);
  await limitTo(2);
  expect(await draw(100)).toMatchObject({ count: 2, rate: 2 });
  await limitTo(null);
  expect(await draw(100)).toBeNull();
});

test('returned tokens can be drawn again, up to the capacity', async () => {
  await limitTo(0.0001);
  await draw(1);
  await settle(1);
  expect(await draw(1)).toMatchObject({ count: 1 });
  await settle(9);
  expect(await draw(9)).toMatchObject({ count: 1 });
});

test('the bucket tells when deliveries last waited for the limit', async () => {
  await limitTo(3);
  await draw(5);
  await settle(1);
  expect(await readBucket()).toMatchObject({ isLimited: false });
  await settle(0, true);
  expect(await readBucket()).toMatchObject({ isLimited: true });
});

test('a deleted subscription has no bucket', async () => {
  await limitTo(3);
  await draw(1);
  await database.pool.query('DELETE FROM subscriptions WHERE id = $1', [id]);
  expect(await readBucket()).toBeUndefined();
});
