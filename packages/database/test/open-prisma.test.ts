import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createAccount, createServiceToken, openDatabase } from '@runhook/database';
import {
  containsText,
  inPrismaTransaction,
  openPrismaDatabase,
  type PrismaDatabase,
} from '@runhook/database/prisma';
import { createTestDatabase, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
});
afterEach(async () => {
  await database.close();
  await testDatabase.drop();
});

const newAccount = (name = 'A') =>
  createAccount(database.prisma, { name, plan: 'team', deployment: 'multi_tenant' });

test('every connection, including those of Prisma Client, has JIT off and unchanged planner settings', async () => {
  const settings = `SELECT name, setting FROM pg_settings
    WHERE name = 'jit' OR source = 'session' AND category LIKE 'Query Tuning%' ORDER BY name`;
  const off = [{ name: 'jit', setting: 'off' }];
  expect(await database.prisma.$queryRawUnsafe(settings)).toEqual(off);
  const withoutPrisma = openDatabase({ url: testDatabase.url });
  try {
    expect((await withoutPrisma.pool.query(settings)).rows).toEqual(off);
  } finally {
    await withoutPrisma.close();
  }
});

test('Prisma and SQL return the same times, whatever the time zone of the database', async () => {
  const name = new URL(testDatabase.url).pathname.slice(1);
  await database.pool.query(`ALTER DATABASE ${name} SET TimeZone = 'Asia/Tokyo'`);
  await database.close();
  database = openPrismaDatabase({ url: testDatabase.url });
  const { prisma, pool } = database;
  const expiresAt = new Date('2026-11-20T10:00:00.123Z');
  const { id: accountId } = await newAccount();
  const { id } = await createServiceToken(prisma, { accountId, name: 't', permissionSets: [], expiresAt });
  expect((await prisma.serviceToken.findUniqueOrThrow({ where: { id: BigInt(id) } })).expiresAt).toEqual(
    expiresAt,
  );
  const { rows } = await pool.query('SELECT extract(epoch FROM expires_at) AS seconds FROM service_tokens');
  expect(Number(rows[0].seconds) * 1000).toBe(expiresAt.getTime());
});

test('rows are created with the time of the database clock in microseconds', async () => {
  await inPrismaTransaction(database.prisma, async (transaction) => {
    const data = { identifier: 'act_1', name: 'A', plan: 'team', deployment: 'multi_tenant' };
    const { id } = await transaction.account.create({ data });
    const where = { id, createdAt: { lt: new Date(0) } };
    expect(await transaction.account.count({ where })).toBe(0);
    const [row] = await transaction.$queryRaw<
      { same: boolean }[]
    >`SELECT created_at = now() AS same FROM accounts`;
    expect(row).toEqual({ same: true });
  });
});

test('a transaction is rolled back entirely when its work throws', async () => {
  const failed = inPrismaTransaction(database.prisma, async (transaction) => {
    const data = { identifier: 'act_1', name: 'A', plan: 'team', deployment: 'multi_tenant' };
    await transaction.account.create({ data });
    throw new RangeError('no more');
  });
  await expect(failed).rejects.toThrow(RangeError);
  expect(await database.prisma.account.count()).toBe(0);
});

test('a transaction of Prisma Client has an idle timeout of 30 s, which ends with the transaction', async () => {
  const [row] = await inPrismaTransaction(
    database.prisma,
    (transaction) =>
      transaction.$queryRaw<
        { limit: string }[]
      >`SELECT current_setting('idle_in_transaction_session_timeout') AS limit`,
  );
  expect(row).toEqual({ limit: '30s' });
  const { rows } = await database.pool.query(
    `SELECT current_setting('idle_in_transaction_session_timeout') AS limit`,
  );
  expect(rows).toEqual([{ limit: '0' }]);
});

test.each([
  ['50%', ['50% off']],
  ['A_B', ['a_b']],
  ['\\', ['back\\slash']],
  ['OFF', ['50% off']],
])('the filter containsText(%p) finds names with these characters in any case', async (text, names) => {
  for (const name of ['50% off', '50 euros', 'a_b', 'aXb', 'back\\slash']) await newAccount(name);
  const found = await database.prisma.account.findMany({ where: { name: containsText(text) } });
  expect(found.map(({ name }) => name)).toEqual(names);
});
