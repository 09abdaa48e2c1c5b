import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { createHmacSecret } from '@runhook/contract';
import { createSecretBox, createUser, type EncryptionKey } from '@runhook/database';
import { eventually, seedAccount, seedSubscription, testEncryptionKeys, testSecrets } from '@runhook/testing';
import { type CommandLine, openCommandLine } from './command-line.ts';

const NEW_KEY: EncryptionKey = { name: 'new', key: randomBytes(32) };
const textOf = (keys: readonly EncryptionKey[]) =>
  keys.map(({ name, key }) => `${name}:${key.toString('base64')}`).join(',');
const NEW_KEY_ONLY = createSecretBox([NEW_KEY]);

let commandLine: CommandLine;
let account: Awaited<ReturnType<typeof seedAccount>>;

beforeEach(async () => {
  commandLine = await openCommandLine();
  account = await seedAccount(commandLine.database);
});

afterEach(() => commandLine.close());

const BOTH_KEYS = { env: { ENCRYPTION_KEYS: textOf([NEW_KEY, ...testEncryptionKeys]) } };
const clientUrl = 'https://receiver.example.com/hook';

/** Runs the built program. */
const reencrypt = () => commandLine.json('secrets reencrypt', BOTH_KEYS);
const reencryptInProcess = () => commandLine.jsonInProcess('secrets reencrypt', BOTH_KEYS);

async function ciphertextOf(id: string): Promise<string> {
  const row = await commandLine.database.prisma.subscription.findUniqueOrThrow({ where: { id } });
  return row.hmacSecretCiphertext;
}

/** Returns the new secret. */
async function beginRotation(id: string): Promise<string> {
  const next = createHmacSecret();
  await commandLine.database.prisma.subscription.update({
    where: { id },
    data: {
      nextHmacSecretCiphertext: testSecrets.encrypt(next),
      rotationStartedAt: new Date(),
      rotationEndsAt: new Date(Date.now() + 3_600_000),
    },
  });
  return next;
}

const addUser = (email: string) =>
  createUser(commandLine.database.prisma, testSecrets, { email, name: 'Ada', password: 'pass phrase' });

const apiKeyCiphertextOf = async (id: number) =>
  (await commandLine.database.prisma.user.findUniqueOrThrow({ where: { id: BigInt(id) } })).apiKeyCiphertext;

test('reencrypt makes every secret readable with the new key alone and does not change its value', async () => {
  const subscription = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  const deleted = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  await commandLine.database.prisma.subscription.update({
    where: { id: deleted.id },
    data: { deletedAt: new Date() },
  });
  const user = await addUser('ada@example.com');
  const identity = await commandLine.database.prisma.oidcIdentity.create({
    data: {
      userId: BigInt(user.id),
      issuer: 'https://login.example.com',
      subject: '1',
      refreshTokenCiphertext: testSecrets.encrypt('refresh'),
      checkDueAt: new Date(),
    },
  });
  const next = await beginRotation(subscription.id);
  const headersCiphertext = testSecrets.encrypt('{"X-Gate":"open"}');
  const headed = {
    headerNames: ['X-Gate'],
    headersCiphertext,
    signatureKeyCiphertext: testSecrets.encrypt('whsk_AAAA'),
    signaturePublicKey: 'whpk_AAAA',
  };
  await commandLine.database.prisma.subscription.update({ where: { id: subscription.id }, data: headed });

  expect(await reencrypt()).toEqual({
    key: 'new',
    is_complete: true,
    secrets: [
      { secret: 'next_hmac_secret', reencrypted: 1, unreadable: [], busy: 0 },
      { secret: 'hmac_secret', reencrypted: 2, unreadable: [], busy: 0 },
      { secret: 'next_signature_key', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'signature_key', reencrypted: 1, unreadable: [], busy: 0 },
      { secret: 'headers', reencrypted: 1, unreadable: [], busy: 0 },
      { secret: 'format_options', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'api_key', reencrypted: 1, unreadable: [], busy: 0 },
      { secret: 'refresh_token', reencrypted: 1, unreadable: [], busy: 0 },
    ],
  });
  expect(NEW_KEY_ONLY.decrypt(await ciphertextOf(subscription.id))).toBe(subscription.hmacSecret);
  expect(NEW_KEY_ONLY.decrypt(await ciphertextOf(deleted.id))).toBe(deleted.hmacSecret);
  expect(NEW_KEY_ONLY.decrypt(await apiKeyCiphertextOf(user.id))).toBe(user.apiKey);
  const where = { id: identity.id };
  const stored = await commandLine.database.prisma.oidcIdentity.findUniqueOrThrow({ where });
  expect(NEW_KEY_ONLY.decrypt(stored.refreshTokenCiphertext ?? '')).toBe('refresh');
  const rotating = await commandLine.database.prisma.subscription.findUniqueOrThrow({
    where: { id: subscription.id },
  });
  expect(NEW_KEY_ONLY.decrypt(rotating.nextHmacSecretCiphertext ?? '')).toBe(next);
  expect(NEW_KEY_ONLY.decrypt(rotating.headersCiphertext ?? '')).toBe('{"X-Gate":"open"}');
  expect(NEW_KEY_ONLY.decrypt(rotating.signatureKeyCiphertext ?? '')).toBe('whsk_AAAA');

  const ciphertextBefore = await ciphertextOf(subscription.id);
  expect(
    (await reencryptInProcess()).secrets.map(({ reencrypted }: { reencrypted: number }) => reencrypted),
  ).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  expect(await ciphertextOf(subscription.id)).toBe(ciphertextBefore);
});

test('reencrypt handles more secrets than one batch, also when it runs twice concurrently', async () => {
  const { pool } = commandLine.database;
  const { id } = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  await pool.query(
    `INSERT INTO subscriptions (id, account_id, name, description, event_types, job_ids, client_url, active, hmac_secret_ciphertext)
     SELECT 'wsu_' || lpad(n::text, 27, '0'), account_id, name, description, event_types, job_ids, client_url, active, hmac_secret_ciphertext
     FROM subscriptions, generate_series(1, 450) n WHERE id = $1`,
    [id],
  );
  const results = await Promise.all([reencrypt(), reencrypt()]);
  const [ofFirst, ofSecond] = results.map(({ secrets }) => secrets[1].reencrypted);
  expect(ofFirst + ofSecond).toBe(451);
  const { rows } = await pool.query(
    "SELECT count(*)::int FROM subscriptions WHERE hmac_secret_ciphertext LIKE 'new.%'",
  );
  expect(rows[0].count).toBe(451);
});

test('reencrypt reports a secret that does not decrypt by its id and reencrypts all others', async () => {
  const tampered = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  const plain = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  const intact = await seedSubscription(commandLine.database, { accountId: account.id, clientUrl });
  const setCiphertext = (id: string, hmacSecretCiphertext: string) =>
    commandLine.database.prisma.subscription.update({ where: { id }, data: { hmacSecretCiphertext } });
  const broken = `${(await ciphertextOf(tampered.id)).slice(0, -4)}AAAA`;
  await setCiphertext(tampered.id, broken);
  await setCiphertext(plain.id, plain.hmacSecret);
  const userWithLostKey = await addUser('lost@example.com');
  const foreign = createSecretBox([{ name: 'gone', key: randomBytes(32) }]).encrypt(userWithLostKey.apiKey);
  await commandLine.database.prisma.user.update({
    where: { id: BigInt(userWithLostKey.id) },
    data: { apiKeyCiphertext: foreign },
  });

  const ran = await commandLine.run('secrets reencrypt --json', BOTH_KEYS);
  expect(ran).toMatchObject({ code: 1, stderr: '' });
  const unreadable = [
    { id: tampered.id, key: 'test' },
    { id: plain.id, key: null },
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
  expect(JSON.parse(ran.stdout)).toEqual({
    key: 'new',
    is_complete: false,
    secrets: [
      { secret: 'next_hmac_secret', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'hmac_secret', reencrypted: 1, unreadable, busy: 0 },
      { secret: 'next_signature_key', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'signature_key', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'headers', reencrypted: 0, unreadable: [], busy: 0 },
      { secret: 'format_options', reencrypted: 0, unreadable: [], busy: 0 },
      {
        secret: 'api_key',
        reencrypted: 0,
        unreadable: [{ id: String(userWithLostKey.id), key: 'gone' }],
        busy: 0,
      },
      { secret: 'refresh_token', reencrypted: 0, unreadable: [], busy: 0 },
    ],
  });
  expect(await ciphertextOf(tampered.id)).toBe(broken);
  expect(NEW_KEY_ONLY.decrypt(await ciphertextOf(intact.id))).toBe(intact.hmacSecret);

  const forPeople = await commandLine.run('secrets reencrypt', BOTH_KEYS);
  expect(forPeople.code).toBe(1);
  expect(forPeople.stdout).toContain(`subscription ${tampered.id}: does not decrypt`);
  expect(forPeople.stdout).toContain(
    `user ${userWithLostKey.id}: does not decrypt (its key is named "gone")`,
  );
  expect(forPeople.stdout).not.toContain(plain.hmacSecret);
});

test('reencrypt waits for a row that another transaction has locked and reencrypts the value that it wrote', async () => {
  const user = await addUser('busy@example.com');
  const client = await commandLine.database.pool.connect();
  let reencryption: Promise<{ secrets: { busy: number }[] }>;
  const rotated = testSecrets.encrypt('rhu_rotated');
  try {
    await client.query('BEGIN');
    await client.query('UPDATE users SET api_key_ciphertext = $2 WHERE id = $1', [user.id, rotated]);
    reencryption = reencrypt();
    // Once the command has sent this statement, it has met the locked row, or is about to.
    const meeting = `SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%SKIP LOCKED%UPDATE users%'`;
    await eventually(async () => expect((await commandLine.database.pool.query(meeting)).rowCount).toBe(1));
    await client.query('COMMIT');
  } finally {
    client.release();
  }
  expect((await reencryption).secrets.map(({ busy }) => busy)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  expect(NEW_KEY_ONLY.decrypt(await apiKeyCiphertextOf(user.id))).toBe('rhu_rotated');
});

test('reencrypt fails without valid encryption keys and does not repeat them', async () => {
  const failure = await commandLine.failure('secrets reencrypt', { env: { ENCRYPTION_KEYS: '' } });
  expect(failure).toMatchObject({ exitCode: 1, code: 'environment' });
  expect(failure.message).toMatch(/ENCRYPTION_KEYS is not set/);
  const keyError = await commandLine.failure('secrets reencrypt', {
    env: { ENCRYPTION_KEYS: 'k1:c2VjcmV0' },
  });
  expect(keyError.message).toMatch(/key "k1" must be 32 bytes/);
  expect(keyError.message).not.toContain('c2VjcmV0');
});
