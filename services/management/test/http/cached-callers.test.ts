import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createAccount } from '@runhook/database';
import { type CallOptions, type Harness, startHarness, type TestAccount } from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let jobId: number;

beforeAll(async () => {
  harness = await startHarness();
});
beforeEach(async () => {
  account = await harness.newAccount();
  jobId = await harness.newJob(account);
});
afterAll(() => harness.close());

const start = async (options: CallOptions, accountId = account.id, fields: object = {}) => {
  const body = { job_id: jobId, engine_version: '1.9', ...fields };
  return await harness.call('POST', `/api/v2/accounts/${accountId}/runs/`, { body, ...options });
};
const sql = (text: string, values: unknown[] = []) => harness.database.pool.query(text, values);
const newest = '(SELECT max(id) FROM service_tokens)';

describe('a caller that this process has cached', () => {
  test('may report as soon as the change that permits its token is committed', async () => {
    const token = await harness.newToken(account, ['developer']);
    expect([(await start({ token })).status, (await start({ token })).status]).toEqual([403, 403]);
    await sql(`UPDATE service_tokens SET permission_sets = '{job_runner}' WHERE id = ${newest}`);
    expect((await start({ token })).status).toBe(201);
  });

  test('may report as soon as its membership of the account is committed', async () => {
    const otherAccount = await createAccount(harness.database.prisma, {
      name: 'Elsewhere',
      plan: 'free',
      deployment: 'multi_tenant',
    });
    const user = await harness.newUser(account, 'developer', ['account_admin']);
    const unknownJob = async () => (await start({ token: user.apiKey }, otherAccount.id)).status;
    expect([await unknownJob(), await unknownJob()]).toEqual([403, 403]);
    await sql(
      `INSERT INTO memberships (account_id, user_id, license, permission_sets)
       VALUES ($1, $2, 'developer', '{account_admin}')`,
      [otherAccount.id, user.id],
    );
    expect(await unknownJob()).toBe(400);
  });

  test('gets no stored response once its token is revoked', async () => {
    const token = await harness.newToken(account, ['job_runner']);
    const headers = { 'idempotency-key': `key of ${account.id}` };
    expect([(await start({ token })).status, (await start({ token, headers })).status]).toEqual([201, 201]);
    expect((await start({ token, headers })).headers.get('idempotent-replay')).toBe('true');
    await sql(`UPDATE service_tokens SET revoked_at = now() WHERE id = ${newest}`);
    expect((await start({ token, headers })).status).toBe(401);
  });
});

describe('the job of a started run', () => {
  test('is read again for a console session after the cached job has changed', async () => {
    const user = await harness.newUser(account, 'developer', ['account_admin']);
    const headers = await harness.signIn(user);
    expect((await start({ token: account.token })).status).toBe(201);
    await sql(`UPDATE jobs SET name = 'Renamed' WHERE id = $1`, [jobId]);
    const { status, json } = await start({ headers });
    expect([status, json.data?.job_name]).toEqual([201, 'Renamed']);
  });

  test('is found after an earlier start was rejected because the job did not exist', async () => {
    const fields = { job_id: jobId + 1_000_000 };
    expect((await start({ token: account.token }, account.id, fields)).status).toBe(400);
    await sql('UPDATE jobs SET id = $2 WHERE id = $1', [jobId, fields.job_id]);
    expect((await start({ token: account.token }, account.id, fields)).status).toBe(201);
  });
});
