import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { isDatabaseUnavailable, runStatement } from '@runhook/database';
import { inPrismaTransaction, openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  eventually,
  startTcpProxy,
  type TcpProxy,
  type TestDatabase,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';

let testDatabase: TestDatabase;
let proxy: TcpProxy;
let database: PrismaDatabase;
beforeEach(async () => {
  testDatabase = await createTestDatabase();
  proxy = await startTcpProxy(testDatabase.url);
  database = openPrismaDatabase({ url: proxy.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterEach(async () => {
  await database.close();
  await proxy.close();
  await testDatabase.drop();
});

const errorOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);

test('Prisma and plain SQL distinguish an unavailable database from one that responds with an error', async () => {
  const queries = () => [
    errorOf(database.prisma.account.count()),
    errorOf(inPrismaTransaction(database.prisma, (transaction) => transaction.account.count())),
    errorOf(runStatement(database.pool, 'SELECT 1', [])),
  ];
  expect(await Promise.all(queries())).toEqual([undefined, undefined, undefined]);
  await proxy.cut();
  for (const error of await Promise.all(queries())) expect(isDatabaseUnavailable(error)).toBe(true);
  await proxy.restore();
  expect(await Promise.all(queries())).toEqual([undefined, undefined, undefined]);
});

test('a connection that breaks during a query counts as unavailable', async () => {
  const running = [
    errorOf(runStatement(database.pool, 'SELECT pg_sleep(3600)', [])),
    errorOf(database.prisma.$queryRaw`SELECT pg_sleep(3600)::text`),
    errorOf(
      inPrismaTransaction(
        database.prisma,
        (transaction) => transaction.$queryRaw`SELECT pg_sleep(3600)::text`,
      ),
    ),
  ];
  await runStatement(database.pool, 'SELECT 1', []);
  await proxy.cut();
  for (const error of await Promise.all(running)) expect(isDatabaseUnavailable(error)).toBe(true);
});

test('a transaction that gets no connection counts as unavailable', async () => {
  const full = openPrismaDatabase({ url: testDatabase.url, connectionsMax: 1, connectTimeoutMs: 50 });
  // A busy machine may need more tries for the one connection.
  const holder = await eventually(() => full.pool.connect());
  const error = await errorOf(full.prisma.$transaction((transaction) => transaction.account.count()));
  expect(isDatabaseUnavailable(error)).toBe(true);
  holder.release();
  await full.close();
});

test('a session that the server terminated counts as unavailable', async () => {
  const running = errorOf(runStatement(database.pool, 'SELECT pg_sleep(3600)', []));
  await eventually(async () => {
    const ended = await runStatement(
      database.pool,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query LIKE 'SELECT pg_sleep%' AND datname = current_database()`,
      [],
    );
    expect(ended).toHaveLength(1);
  });
  expect(isDatabaseUnavailable(await running)).toBe(true);
});

test('the server cancels a statement that runs or waits for a lock too long, which counts as unavailable', async () => {
  const [limits] = await runStatement(
    database.pool,
    `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock`,
    [],
  );
  expect(limits).toEqual({ statement: '18s', lock: '5s' });
  const holder = await database.pool.connect();
  await holder.query('BEGIN; LOCK TABLE jobs');
  const waiter = await database.pool.connect();
  await waiter.query('SET lock_timeout = 20');
  const locked = await errorOf(runStatement(waiter, 'SELECT FROM jobs', []));
  await waiter.query('SET lock_timeout = 0; SET statement_timeout = 20');
  const slow = await errorOf(runStatement(waiter, 'SELECT FROM jobs', []));
  holder.release(true);
  waiter.release(true);
  expect([locked, slow]).toMatchObject([{ code: '55P03' }, { code: '57014' }]);
  for (const error of [locked, slow]) expect(isDatabaseUnavailable(error)).toBe(true);
});

test('an error of the statement does not count as unavailable', async () => {
  const errors = await Promise.all([
    errorOf(runStatement(database.pool, 'SELECT nonsense', [])),
    errorOf(
      database.prisma.account.create({ data: { identifier: 'a', name: 'a', plan: 'x', deployment: 'x' } }),
    ),
    errorOf(database.prisma.account.findUniqueOrThrow({ where: { id: 1n } })),
  ]);
  for (const error of errors) {
    expect(error).toBeInstanceOf(Error);
    expect(isDatabaseUnavailable(error)).toBe(false);
  }
});
