import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { addMembership, createSecretBox, createServiceToken, reencryptSecrets } from '@runhook/database';
import { removeMembership, revokeServiceToken, updateAccount } from '../../src/identity/administration.ts';
import { resetPassword } from '../../src/identity/users.ts';
import {
  cookieOf,
  failure,
  type Harness,
  type Json,
  PASSWORD,
  SUBSCRIPTION_FIELDS,
  startHarness,
  type TestAccount,
  type TestUser,
} from '../harness.ts';

let harness: Harness;
let account: TestAccount;
let admin: TestUser;

beforeAll(async () => {
  harness = await startHarness();
});

beforeEach(async () => {
  account = await harness.newAccount();
  admin = await harness.newUser(account, 'developer', ['admin']);
});

afterAll(() => harness.close());

const path = () => `/api/v3/accounts/${account.id}/audit`;
const read = (query = '', token = admin.apiKey) => harness.call('GET', path() + query, { token });

/** Returns entries newest first, without those of the set-up. */
async function entries(query = '?limit=100'): Promise<Json[]> {
  const { data } = (await read(query)).json;
  return data.filter(
    ({ actor, action }: Json) => actor.kind !== 'operator' || !/^(token|member)/.test(action),
  );
}

const asAdmin = (method: string, suffix: string, body?: object) =>
  harness.call(method, account.path(suffix), { token: admin.apiKey, ...(body && { body }) });
const user = () => ({ kind: 'user', id: String(admin.id), name: admin.email });
const OPERATOR = { kind: 'operator', id: null, name: null };

describe('the audit log of webhooks', () => {
  test('records each change with its author and the names of the changed fields, but not their values', async () => {
    const body = { ...SUBSCRIPTION_FIELDS, headers: { 'X-Gate': 'open sesame' } };
    const { id } = (await asAdmin('POST', '/subscriptions', body)).json.data;
    const subscriptionPath = `/subscription/${id}`;
    const moved = { ...body, client_url: 'https://moved.example.com/secret', active: false };
    await asAdmin('PUT', subscriptionPath, moved);
    await asAdmin('PUT', subscriptionPath, { ...moved, headers: { 'X-Gate': '***' } });
    await asAdmin('PUT', subscriptionPath, { ...moved, headers: { 'X-Gate': 'another' } });
    await asAdmin('POST', `${subscriptionPath}/rotate-secret`);
    await harness.call('POST', account.path(`${subscriptionPath}/finish-rotation`), { token: account.token });
    await asAdmin('DELETE', subscriptionPath);
    const target = { kind: 'webhook', id, name: SUBSCRIPTION_FIELDS.name };
    const token = { kind: 'service_token', id: expect.any(String), name: 'a token' };
    const page = await entries();
    expect(page.map(({ action, actor, details }) => [action, actor, details])).toEqual([
      ['webhook.deleted', user(), {}],
      ['secret.rotation_finished', token, {}],
      ['secret.rotated', user(), {}],
      ['webhook.changed', user(), { changed: ['headers'] }],
      ['webhook.changed', user(), { changed: ['client_url', 'active', 'headers'] }],
      ['webhook.created', user(), {}],
    ]);
    for (const entry of page) expect(entry.target).toEqual(target);
    expect(JSON.stringify(page)).not.toMatch(/open sesame|another|secret\/|whsec_/);
  });

  test('records that a key pair was added, rotated and removed', async () => {
    const { id } = await harness.newSubscription(account);
    const put = (signature_key: string | null) =>
      asAdmin('PUT', `/subscription/${id}`, { ...SUBSCRIPTION_FIELDS, signature_key });
    await put('ed25519');
    await put('ed25519');
    await asAdmin('POST', `/subscription/${id}/rotate-signature-key`);
    await asAdmin('POST', `/subscription/${id}/finish-rotation`);
    await asAdmin('POST', `/subscription/${id}/rotate-signature-key`, { overlap_hours: 0 });
    await put(null);
    const changed = { changed: ['signature_key'] };
    expect(
      (await entries()).slice(0, -1).map(({ action, actor, details }) => [action, actor, details]),
    ).toEqual([
      ['webhook.changed', user(), changed],
      ['signature_key.rotated', user(), {}],
      ['secret.rotation_finished', user(), {}],
      ['signature_key.rotated', user(), {}],
      ['webhook.changed', user(), changed],
    ]);
  });

  test('records nothing for requests that are rejected, change nothing or are rolled back', async () => {
    const { id } = await harness.newSubscription(account);
    const entriesBefore = await entries();
    await asAdmin('PUT', `/subscription/${id}`, SUBSCRIPTION_FIELDS);
    await asAdmin('PUT', `/subscription/${id}`, { ...SUBSCRIPTION_FIELDS, name: '' });
    await asAdmin('POST', `/subscription/${id}/finish-rotation`);
    await harness.database.prisma
      .$transaction(async (transaction) => {
        await transaction.subscription.update({ where: { id }, data: { name: 'Never' } });
        throw new Error('undone');
      })
      .catch(() => undefined);
    expect(await entries()).toEqual(entriesBefore);
  });

  test('names the service for automatic changes, an operator for those by SQL, and ignores re-encryption', async () => {
    const { id } = await harness.newSubscription(account, { headers: { 'X-Gate': 'open' } });
    const { prisma, pool } = harness.database;
    await prisma.subscription.update({ where: { id }, data: { name: 'By hand' } });
    await prisma.subscription.update({
      where: { id },
      data: { active: false, deactivateReason: 'It failed.' },
    });
    await asAdmin('POST', `/subscription/${id}/rotate-secret`);
    await pool.query('UPDATE subscriptions SET rotation_ends_at = now() WHERE id = $1', [id]);
    await pool.query(
      `UPDATE subscriptions SET hmac_secret_ciphertext = next_hmac_secret_ciphertext, next_hmac_secret_ciphertext = NULL,
         rotation_started_at = NULL, rotation_ends_at = NULL WHERE id = $1`,
      [id],
    );
    const [key] = harness.settings.encryptionKeys;
    if (key === undefined) throw new Error('no key');
    const newest = { name: 'newest', key: key.key };
    expect(createSecretBox([newest, key]).encrypt('x')).toMatch(/^newest/);
    await reencryptSecrets(pool, [newest, key]);
    await pool.query('UPDATE subscriptions SET dispatched_at = now(), http_status_code = 200');
    const service = { kind: 'service', id: null, name: null };
    expect((await entries()).map(({ action, actor, details }) => [action, actor, details])).toEqual([
      ['secret.rotation_finished', service, {}],
      ['secret.rotated', user(), {}],
      ['webhook.deactivated', service, { reason: 'It failed.' }],
      ['webhook.changed', OPERATOR, { changed: ['name'] }],
      ['webhook.created', { kind: 'service_token', id: expect.any(String), name: 'a token' }, {}],
    ]);
    await reencryptSecrets(pool, [key, newest]);
  });
});

describe('the audit log of people', () => {
  test('records sign-ins with their IP address, and rotations of the API key, in each account of the user', async () => {
    const second = await harness.newAccount();
    await addMembership(harness.database.prisma, {
      accountId: second.id,
      userId: admin.id,
      license: 'developer',
      permissionSets: ['admin'],
    });
    await harness.signIn(admin);
    const rotated = await harness.call('POST', `/api/v2/users/${admin.id}/apikey/`, { token: admin.apiKey });
    const token = rotated.json.data.api_key;
    for (const { id } of [account, second]) {
      const { data } = (await harness.call('GET', `/api/v3/accounts/${id}/audit?limit=2`, { token })).json;
      const target = { kind: 'user', id: String(admin.id), name: admin.email };
      expect(data).toMatchObject([
        { action: 'api_key.rotated', actor: user(), target, details: {} },
        { action: 'session.signed_in', actor: user(), target, details: { address: '127.0.0.1' } },
      ]);
    }
  });

  test('records a sign-out and a session that a sign-in replaces, but none that a password reset ends', async () => {
    const headers = await harness.signIn(admin);
    const body = { email: admin.email, password: PASSWORD };
    const { cookie = '' } = headers;
    const replaced = await harness.call('POST', '/api/v3/session', { body, headers: { cookie } });
    await harness.call('DELETE', '/api/v3/session', {
      headers: { ...headers, cookie: cookieOf(replaced.headers) },
    });
    await harness.signIn(admin);
    await resetPassword(harness.database.prisma, admin.id, 'another pass phrase');
    const target = { kind: 'user', id: String(admin.id), name: admin.email };
    const { data } = (await read('?action=session.ended')).json;
    const ended = { actor: user(), target, details: { address: '127.0.0.1', sessions: 1 } };
    expect(data).toMatchObject([ended, ended]);
  });

  test('records failed sign-ins of a user as one entry for a network and 15 minutes, and none of unknown users', async () => {
    const second = await harness.startSecond({ trustedProxyCidrs: ['127.0.0.0/8'] });
    const fail = (email: string, address: string) =>
      second.call('POST', '/api/v3/session', {
        body: { email, password: 'wrong' },
        headers: { 'x-forwarded-for': address },
      });
    for (const address of ['192.0.2.1', '192.0.2.2', '198.51.100.7']) {
      expect((await fail(admin.email, address)).status).toBe(401);
      expect((await fail('nobody@example.com', address)).status).toBe(401);
    }
    const metrics = await (await fetch(`${second.operationsOrigin}/metrics`)).text();
    expect(metrics).toMatch(/^runhook_sign_in_failures_total\{reason="wrong_password",.*\} 3$/m);
    expect(metrics).toMatch(/^runhook_sign_in_failures_total\{reason="unknown_email",.*\} 3$/m);
    // A stopping process stores the counts.
    await second.close();
    const { pool } = harness.database;
    await pool.query('DELETE FROM sign_in_failures WHERE user_id = $1', [admin.id]);
    const { data } = (await read('?action=session.sign_in_failed')).json;
    const counts: Record<string, number> = {};
    for (const { actor, target, details } of data) {
      expect(actor).toEqual({ kind: 'anonymous', id: null, name: null });
      expect(target).toEqual({ kind: 'user', id: String(admin.id), name: admin.email });
      expect(details.window_start).toMatch(/^\d+$/);
      // A window may end during the test.
      counts[details.network] = (counts[details.network] ?? 0) + details.count;
    }
    expect(counts).toEqual({ '192.0.2.0/24': 2, '198.51.100.0/24': 1 });
  });

  test('records what operators do to members, passwords, tokens and the account', async () => {
    const { prisma } = harness.database;
    const otherUser = await harness.newUser(account, 'read_only', []);
    await resetPassword(prisma, otherUser.id, 'another pass phrase');
    await removeMembership(prisma, { accountId: account.id, userId: otherUser.id });
    const newToken = { accountId: account.id, name: 'CI', permissionSets: ['job_runner' as const] };
    const { id } = await createServiceToken(prisma, newToken);
    await revokeServiceToken(prisma, id);
    await revokeServiceToken(prisma, id);
    await updateAccount(prisma, account.id, { plan: 'team' });
    const { data } = (await read('?limit=6')).json;
    const member = { kind: 'user', id: String(otherUser.id), name: otherUser.email };
    const token = { kind: 'service_token', id: String(id), name: 'CI' };
    const itself = { kind: 'account', id: String(account.id), name: 'Acme' };
    expect(data.map(({ action, target, details }: Json) => [action, target, details])).toEqual([
      ['account.changed', itself, { changed: ['plan'], plan: 'team', deployment: 'multi_tenant' }],
      ['token.revoked', token, {}],
      ['token.created', token, { permission_sets: ['job_runner'] }],
      ['member.removed', member, {}],
      ['password.reset', member, {}],
      ['member.added', member, { license: 'read_only', permission_sets: [] }],
    ]);
    for (const { actor } of data) expect(actor).toEqual(OPERATOR);
  });
});

test('the audit log is paged and filtered by action and time', async () => {
  for (let count = 0; count < 3; count++) await harness.newSubscription(account);
  const { data: created, extra } = (await read('?action=webhook.created&limit=2')).json;
  expect(created).toHaveLength(2);
  expect(extra.pagination).toEqual({ total_count: 3, count: 2 });
  const [{ created_at: latest }] = created;
  const of = async (query: string) =>
    (await read(`?action=webhook.created&${query}`)).json.extra.pagination.total_count;
  expect(await of(`since=${latest}`)).toBe(1);
  expect(await of(`until=${latest}`)).toBe(2);
  const iso = new Date(Number(latest) / 1_000).toISOString();
  expect(await of(`logged_at_start=${iso.slice(0, 10)}&logged_at_end=${iso.slice(0, 10)}`)).toBe(3);
  expect(await of(`logged_at_start=${latest}&logged_at_end=`)).toBe(1);
  expect(await of(`logged_at_end=${latest}&account_id=${account.id}`)).toBe(3);
  expect(await of('logged_at_start=2099-01-01')).toBe(0);
  const logs = await harness.call('GET', `/api/v3/accounts/${account.id}/audit-logs/?limit=2`, {
    token: admin.apiKey,
  });
  expect(logs.json).toEqual((await read('?limit=2')).json);
  for (const query of ['action=webhook.painted&since=yesterday', 'logged_at_end=soon', 'account_id=0'])
    expect((await read(`?${query}`)).status).toBe(400);
});

test('only admins of the account can read the audit log, on any plan', async () => {
  const developer = await harness.newUser(account, 'developer', ['developer']);
  const rejection = failure(
    403,
    'Access denied: Reading the audit log needs the permission set account_admin or admin.',
  );
  expect((await read('', developer.apiKey)).json).toEqual(rejection);
  expect((await read('', await harness.newToken(account, ['member']))).status).toBe(403);
  expect((await read('', account.token)).status).toBe(200);
  const foreign = await harness.newAccount();
  expect((await read('', foreign.token)).json).toEqual(
    failure(403, 'Access denied: Token is not scoped to account.'),
  );
  const free = await harness.newAccount({ plan: 'free' });
  expect((await harness.call('GET', `/api/v3/accounts/${free.id}/audit`, { token: free.token })).status).toBe(
    200,
  );
});

test('the audit log is append-only: entries cannot be updated, deleted or truncated', async () => {
  await harness.newSubscription(account);
  const { pool } = harness.database;
  for (const text of [
    "UPDATE audit_entries SET action = 'webhook.deleted'",
    'DELETE FROM audit_entries',
    'TRUNCATE audit_entries',
  ])
    await expect(pool.query(text)).rejects.toThrow('append-only');
  expect((await entries('?action=webhook.created')).length).toBe(1);
});
