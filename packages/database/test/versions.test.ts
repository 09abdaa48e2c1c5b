import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, seedAccount, seedSubscription, type TestDatabase } from '@runhook/testing';

let testDatabase: TestDatabase;
let database: PrismaDatabase;
beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

const sql = async (text: string, values: unknown[] = []) => (await database.pool.query(text, values)).rows;

/** Writes without triggers, which leaves rows as on a promoted replica that lacks the last changes. */
const sqlOfReplica = (table: string, statement: string) =>
  database.pool.query(
    `BEGIN; ALTER TABLE ${table} DISABLE TRIGGER USER; ${statement}; ALTER TABLE ${table} ENABLE TRIGGER USER; COMMIT`,
  );

async function seed() {
  const { id: accountId } = await seedAccount(database);
  const { id } = await seedSubscription(database, { accountId, clientUrl: 'https://a.example' });
  return { accountId, id };
}

const VERSIONS = `
  SELECT a.version AS account, s.version AS subscription, r.version AS remembered
  FROM accounts a JOIN subscriptions s ON s.account_id = a.id CROSS JOIN cache_version r WHERE a.id = $1`;

test('a change after a failover gets another version than the change that the failover lost', async () => {
  const { accountId, id } = await seed();
  const change = async (name: string) => {
    await sql('UPDATE subscriptions SET name = $2 WHERE id = $1', [id, name]);
    await sql('UPDATE accounts SET plan = plan WHERE id = $1', [accountId]);
    return (await sql(VERSIONS, [accountId]))[0];
  };
  const [before] = await sql(VERSIONS, [accountId]);
  const lost = await change('lost');
  await sqlOfReplica('accounts', `UPDATE accounts SET version = ${before.account} WHERE id = ${accountId}`);
  await sqlOfReplica(
    'subscriptions',
    `UPDATE subscriptions SET version = ${before.subscription}, name = 'before' WHERE id = '${id}'`,
  );
  await sqlOfReplica('cache_version', `UPDATE cache_version SET version = ${before.remembered}`);
  expect(await sql(VERSIONS, [accountId])).toEqual([before]);
  const after = await change('after');
  for (const name of ['account', 'subscription', 'remembered']) {
    const versions = [before, lost, after].map((row) => row[name]);
    expect([name, new Set(versions).size]).toEqual([name, 3]);
  }
});

test('a row that is created again under the id of a lost row gets another version', async () => {
  const { accountId, id } = await seed();
  const [lost] = await sql(VERSIONS, [accountId]);
  const columns = (table: string) =>
    sql(
      `SELECT string_agg(quote_ident(column_name), ', ') AS names FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name = $1 AND is_generated = 'NEVER' AND column_name <> 'version'`,
      [table],
    ).then(([row]) => row.names as string);
  const ofAccount = await columns('accounts');
  const ofSubscription = await columns('subscriptions');
  await sql(`CREATE TABLE lost_accounts AS SELECT ${ofAccount} FROM accounts WHERE id = ${accountId}`);
  await sql(
    `CREATE TABLE lost_subscriptions AS SELECT ${ofSubscription} FROM subscriptions WHERE id = '${id}'`,
  );
  await sqlOfReplica('subscriptions', `DELETE FROM subscriptions WHERE id = '${id}'`);
  await sql(`DELETE FROM jobs WHERE account_id = ${accountId}`);
  await sqlOfReplica('accounts', `DELETE FROM accounts WHERE id = ${accountId}`);
  await sql(`INSERT INTO accounts (${ofAccount}) SELECT ${ofAccount} FROM lost_accounts`);
  await sql(`INSERT INTO subscriptions (${ofSubscription}) SELECT ${ofSubscription} FROM lost_subscriptions`);
  const [created] = await sql(VERSIONS, [accountId]);
  expect(created.account).not.toBe(lost.account);
  expect(created.subscription).not.toBe(lost.subscription);
});

test('versions of a row increase even while the clock is behind them', async () => {
  const { accountId, id } = await seed();
  const ahead = String((Date.now() + 3_600_000) * 1_000);
  await sqlOfReplica('accounts', `UPDATE accounts SET version = ${ahead} WHERE id = ${accountId}`);
  await sqlOfReplica('subscriptions', `UPDATE subscriptions SET version = ${ahead} WHERE id = '${id}'`);
  await sql('UPDATE subscriptions SET name = $2 WHERE id = $1', [id, 'later']);
  const next = String(BigInt(ahead) + 1n);
  expect(await sql(VERSIONS, [accountId])).toMatchObject([{ account: next, subscription: next }]);
});
