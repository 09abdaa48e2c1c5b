import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { deliveryIdFor } from '@runhook/contract';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  exampleEvent,
  seedAccount,
  seedSubscription,
  type TestAccount,
  type TestDatabase,
} from '@runhook/testing';
import { deferDeliveries } from '../../src/record/deferred.ts';
import { cancelDeliveries, type DeliveryKey } from '../../src/record/deliveries.ts';
import { commitResults } from '../log-rows.ts';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let account: TestAccount;
let subscription: { id: string; name: string };
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
  account = await seedAccount(database);
  subscription = await seedSubscription(database, { accountId: account.id, clientUrl: 'http://127.0.0.1:9' });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function insertDelivery(status: string): Promise<DeliveryKey> {
  const event = exampleEvent('job.run.started', account.jobs[0] as never);
  const deliveryId = deliveryIdFor(event.eventId, subscription.id);
  const delivery = { id: deliveryId, subscriptionId: subscription.id, webhookName: subscription.name };
  await commitResults(database.pool, [
    { event, version: null, deliveries: [{ ...delivery, isDeferred: false }] },
  ]);
  await database.pool.query(
    `UPDATE deliveries SET status = $2, reason = 'the first', completed_at = created_at, next_attempt_at = NULL
     WHERE id = $1`,
    [deliveryId, status],
  );
  return { deliveryId, accountId: account.id };
}

const readRow = async ({ deliveryId }: DeliveryKey) =>
  (await database.pool.query('SELECT * FROM deliveries WHERE id = $1', [deliveryId])).rows[0];

describe.each(['delivered', 'failed', 'cancelled'])('a delivery that is %s', (status) => {
  test.each([
    ['cancelled', (key: DeliveryKey) => cancelDeliveries(database.pool, [{ ...key, reason: 'another' }])],
    ['deferred', (key: DeliveryKey) => deferDeliveries(database.pool, [key])],
  ])('is unchanged by the statement that makes pending deliveries %s', async (_change, change) => {
    const key = await insertDelivery(status);
    const before = await readRow(key);
    expect(before).toMatchObject({ status, reason: 'the first' });
    await change(key);
    expect(await readRow(key)).toEqual(before);
  });
});

test('a pending delivery can be deferred, and cancelled with its reason', async () => {
  const key = await insertDelivery('pending');
  await deferDeliveries(database.pool, [key]);
  expect(await readRow(key)).toMatchObject({ status: 'pending', deferred_at: expect.any(Date) });
  await cancelDeliveries(database.pool, [{ ...key, reason: 'another' }]);
  expect(await readRow(key)).toMatchObject({ status: 'cancelled', reason: 'another', deferred_at: null });
});
