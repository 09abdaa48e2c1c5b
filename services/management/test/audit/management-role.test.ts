import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { WAIT_TIMEOUT_MS } from '@runhook/testing';
import { type Harness, startHarness } from '../harness.ts';

// The name is unique, because a role belongs to the entire server, which concurrent tests use.
const ROLE = `management_${randomBytes(6).toString('hex')}`;

/** Returns the statements that docs/security.md tells operators to run, for a role of this test. */
async function statements(): Promise<string> {
  const page = await readFile(new URL('../../../../docs/security.md', import.meta.url), 'utf8');
  const sql = /```sql\n(CREATE ROLE runhook_management[\s\S]*?)```/.exec(page)?.[1] ?? '';
  return sql.replaceAll('runhook_management', ROLE).replace(/PASSWORD '[^']*'/, "PASSWORD 'secret'");
}

let harness: Harness;

beforeAll(async () => {
  harness = await startHarness(async (databaseUrl) => {
    const owner = openDatabase({ url: databaseUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
    await owner.pool.query(await statements());
    await owner.close();
    const url = new URL(databaseUrl);
    url.username = ROLE;
    url.password = 'secret';
    return { databaseUrl: url.href };
  });
});
afterAll(async () => {
  const { pool } = harness.database;
  await pool.query(`DROP OWNED BY ${ROLE}; DROP ROLE ${ROLE}`);
  await harness.close();
});

test('management works with a role that owns no tables and can only read and insert entries of the audit log', async () => {
  const account = await harness.newAccount();
  const admin = await harness.newUser(account, 'developer', ['account_admin']);
  const headers = await harness.signIn(admin);
  const { token } = account;
  const { id } = await harness.newSubscription(account);
  const path = account.path(`/subscription/${id}`);
  const run = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
  const responses = [
    await harness.call('POST', `/api/v2/users/${admin.id}/apikey/`, { headers }),
    await harness.call('POST', `/api/v2/accounts/${account.id}/runs/`, { token, body: run }),
    await harness.call('GET', `${path}/deliveries`, { token }),
    await harness.call('POST', `${path}/recover`, { token, body: { since: '2026-01-01' } }),
    await harness.call('DELETE', path, { token }),
    await harness.call('DELETE', '/api/v3/profile/sessions', { headers }),
    await harness.call('GET', `/api/v3/accounts/${account.id}/audit`, { token }),
  ];
  expect(responses.map(({ status }) => status)).toEqual([200, 201, 200, 202, 200, 200, 200]);
  const actions = responses.at(-1)?.json.data.map(({ action }: { action: string }) => action);
  expect(actions).toEqual(
    expect.arrayContaining([
      'api_key.rotated',
      'session.ended',
      'session.signed_in',
      'webhook.created',
      'webhook.deleted',
    ]),
  );

  const ownDatabase = openDatabase({ url: harness.settings.databaseUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
  try {
    for (const statement of [
      "UPDATE audit_entries SET action = 'x'",
      'DELETE FROM audit_entries',
      'TRUNCATE audit_entries',
    ])
      await expect(ownDatabase.pool.query(statement)).rejects.toThrow(/permission denied/);
    const disable = ownDatabase.pool.query('ALTER TABLE audit_entries DISABLE TRIGGER ALL');
    await expect(disable).rejects.toThrow(/must be owner/);
  } finally {
    await ownDatabase.close();
  }
});
