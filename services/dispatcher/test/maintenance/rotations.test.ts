import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { listQuarantined } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, seedSubscription } from '@runhook/testing';
import { eraseOldSecrets } from '../../src/maintenance/purge.ts';
import { testQuarantine } from '../silent-quarantine.ts';

let database: PrismaDatabase;
let close: () => Promise<void>;

beforeEach(async () => {
  const testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
  close = async () => {
    await database.close();
    await testDatabase.drop();
  };
});

afterEach(() => close());

async function insertRotating(accountId: number, ends: string): Promise<string> {
  const { id } = await seedSubscription(database, { accountId, clientUrl: 'https://receiver.example.com' });
  await database.pool.query(
    `UPDATE subscriptions SET hmac_secret_ciphertext = 'test.old', next_hmac_secret_ciphertext = 'test.new',
       rotation_started_at = now() - interval '1 hour', rotation_ends_at = now() + $2::interval WHERE id = $1`,
    [id, ends],
  );
  return id;
}

test('all old secrets are erased once their rotation has ended, and not before', async () => {
  const { id: accountId } = await seedAccount(database);
  const ended = [];
  for (let count = 0; count < 5; count++) ended.push(await insertRotating(accountId, '-1 second'));
  const ongoing = await insertRotating(accountId, '1 minute');
  expect(await eraseOldSecrets(database.pool, testQuarantine(database.pool), 2)).toBe(5);
  const { rows } = await database.pool.query(
    `SELECT id, hmac_secret_ciphertext AS current, next_hmac_secret_ciphertext AS next, rotation_ends_at IS NULL AS done
     FROM subscriptions ORDER BY done DESC, id`,
  );
  expect(rows).toEqual([
    ...ended.sort().map((id) => ({ id, current: 'test.new', next: null, done: true })),
    { id: ongoing, current: 'test.old', next: 'test.new', done: false },
  ]);
  expect(await eraseOldSecrets(database.pool, testQuarantine(database.pool))).toBe(0);
});

test('the rotation of a key pair ends in the same way and keeps the secret', async () => {
  const { id: accountId } = await seedAccount(database);
  const id = await insertRotating(accountId, '-1 second');
  await database.pool.query(
    `UPDATE subscriptions SET next_hmac_secret_ciphertext = NULL, signature_key_ciphertext = 'test.old key',
       signature_public_key = 'old', next_signature_key_ciphertext = 'test.new key', next_signature_public_key = 'new'
     WHERE id = $1`,
    [id],
  );
  expect(await eraseOldSecrets(database.pool, testQuarantine(database.pool))).toBe(1);
  expect(await database.prisma.subscription.findUnique({ where: { id } })).toMatchObject({
    hmacSecretCiphertext: 'test.old',
    signatureKeyCiphertext: 'test.new key',
    signaturePublicKey: 'new',
    nextSignatureKeyCiphertext: null,
    nextSignaturePublicKey: null,
    rotationEndsAt: null,
  });
});

test('a subscription whose rotation cannot end is set aside, and the secrets of the others are erased', async () => {
  const ids = [];
  for (let count = 0; count < 3; count++)
    ids.push(await insertRotating((await seedAccount(database)).id, '-1 second'));
  await database.pool.query(
    `ALTER TABLE subscriptions ADD CONSTRAINT reject CHECK (id <> '${ids[1]}' OR rotation_ends_at IS NOT NULL) NOT VALID`,
  );
  expect(await eraseOldSecrets(database.pool, testQuarantine(database.pool), 2)).toBe(2);
  expect(await listQuarantined(database.pool, { limit: 10 })).toMatchObject([
    { kind: 'status', key: ids[1] },
  ]);
});
