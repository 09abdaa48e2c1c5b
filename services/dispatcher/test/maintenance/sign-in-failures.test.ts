import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { addMembership, createUser } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  seedAccount,
  type TestDatabase,
  testSecrets,
  WAIT_TIMEOUT_MS,
} from '@runhook/testing';
import { auditSignInFailures } from '../../src/maintenance/sign-in-failures.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

test('failed sign-ins are one audit entry in each account of the user once their 15 minutes have ended', async () => {
  const { prisma, pool } = database;
  const user = { email: 'ada@example.com', name: 'Ada', password: 'correct horse battery staple' };
  const { id: userId } = await createUser(prisma, testSecrets, user);
  const accountIds = [(await seedAccount(database)).id, (await seedAccount(database)).id];
  for (const accountId of accountIds)
    await addMembership(prisma, { accountId, userId, license: 'developer', permissionSets: [] });
  await pool.query(
    `INSERT INTO sign_in_failures (user_id, network, window_start, count)
     VALUES ($1, '192.0.2.0/24', now() - interval '17 minutes', 5),
       ($1, '198.51.100.0/24', now() - interval '17 minutes', 1),
       ($1, '192.0.2.0/24', now() - interval '15 minutes', 2)`,
    [userId],
  );
  expect(await auditSignInFailures(pool, { batchSize: 1 })).toBe(2);
  expect(await auditSignInFailures(pool, {})).toBe(0);
  expect(await prisma.signInFailure.findMany({ select: { count: true } })).toEqual([{ count: 2 }]);
  const entries = await prisma.auditEntry.findMany({
    where: { action: 'session.sign_in_failed' },
    select: { accountId: true, actorKind: true, targetName: true, details: true },
  });
  const window_start = expect.stringMatching(/^\d{16}$/);
  const details = [
    { network: '192.0.2.0/24', count: 5, window_start },
    { network: '198.51.100.0/24', count: 1, window_start },
  ];
  const actorAndTarget = { actorKind: 'anonymous', targetName: 'ada@example.com' };
  expect(entries).toHaveLength(4);
  expect(entries).toEqual(
    expect.arrayContaining(
      accountIds.flatMap((accountId) =>
        details.map((ofNetwork) => ({
          accountId: BigInt(accountId),
          ...actorAndTarget,
          details: ofNetwork,
        })),
      ),
    ),
  );
});
