import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createUser } from '@runhook/database';
import { createTestQueueUrl, eventually } from '@runhook/testing';
import { cookieOf, type Harness, startHarness, type TestAccount } from './harness.ts';

/** All secrets of the scenario, by name. */
const secrets = new Map<string, string>();
const logged: string[] = [];
const rejections: string[] = [];
/** Returns the names of the secrets that the text contains. */
const secretsInClear = (text: string) =>
  [...secrets].flatMap(([name, secret]) => (text.includes(secret) ? name : []));

let harness: Harness;

beforeAll(async () => {
  // On PostgreSQL, the dump includes the counters of the limits and the queue.
  harness = await startHarness(
    async (databaseUrl) => ({
      queueUrl: await createTestQueueUrl({ name: 'PostgreSQL' }, databaseUrl),
      logLevel: 'trace',
      signInAttemptsPerEmail: 10,
    }),
    { destination: { write: (logLine) => void logged.push(logLine) } },
  );
  await useEveryFeature(await harness.newAccount());
});

afterAll(() => harness.close());

/** Signs in and out, rotates, creates, and makes invalid requests that contain secrets. */
async function useEveryFeature(account: TestAccount): Promise<void> {
  const password = `password ${randomUUID()}`;
  const email = 'secretive@example.com';
  const { database, call } = harness;
  const user = await createUser(database.prisma, harness.secrets, { email, name: 'Grace', password });
  const membership = { license: 'developer', permissionSets: ['account_admin'] };
  await database.prisma.membership.create({
    data: { accountId: BigInt(account.id), userId: BigInt(user.id), ...membership },
  });
  secrets.set('password', password).set('first API key', user.apiKey).set('service token', account.token);
  secrets.set('encryption key', harness.settings.encryptionKeys[0]?.key.toString('base64') ?? '');

  const signedIn = await call('POST', '/api/v3/session', { body: { email, password } });
  const [sessionId, endedId] = [
    cookieOf(signedIn.headers),
    cookieOf((await call('POST', '/api/v3/session', { body: { email, password } })).headers),
  ].map((cookie) => cookie.split('=')[1] ?? '') as [string, string];
  secrets.set('session id', sessionId).set('ended session id', endedId);
  const page = { cookie: `runhook_session=${sessionId}`, 'sec-fetch-site': 'same-origin' };

  const created = await harness.newSubscription(account);
  secrets.set('hmac_secret', created.hmac_secret);
  const subscription = account.path(`/subscription/${created.id}`);
  const byKey = await call('POST', `/api/v2/users/${user.id}/apikey/`, { token: user.apiKey });
  secrets.set('second API key', byKey.json.data.api_key);
  const bySession = await call('POST', `/api/v2/users/${user.id}/apikey/`, { headers: page });
  secrets.set('third API key', bySession.json.data.api_key);
  await call('GET', '/api/v3/profile', { headers: page });
  await call('GET', subscription, { headers: page });
  await call('GET', `${subscription}/test`, { headers: page });
  await call('DELETE', '/api/v3/session', { headers: { ...page, cookie: `runhook_session=${endedId}` } });
  const newPassword = `new password ${randomUUID()}`;
  secrets.set('new password', newPassword);
  const passwords = { current_password: password, new_password: newPassword };
  await call('PUT', '/api/v3/profile/password', { headers: page, body: passwords });
  await call('PUT', '/api/v3/profile/password', { headers: page, body: { ...passwords, new_password: 'x' } });
  await call('GET', '/api/v3/profile/sessions', { headers: page });

  const run = { job_id: await harness.newJob(account), engine_version: '1.9.2' };
  await call('POST', `/api/v2/accounts/${account.id}/runs/`, { token: account.token, body: run });
  await eventually(async () => expect(await harness.relayWaiting()).toBe(0));

  const mistakes = [
    call('POST', `/api/v2/users/${user.id}/apikey/`, { token: user.apiKey }),
    call('GET', `/api/v2/users/${user.apiKey}/apikey/?key=${user.apiKey}`, { token: user.apiKey }),
    call('POST', '/api/v3/session', { body: { email, password: `${password}${user.apiKey}` } }),
    call('POST', '/api/v3/session', { body: { email: [password], password: [password] } }),
    call('POST', '/api/v3/session', { body: `{"email": "${email}", "password": "${password}` }),
    call('POST', '/api/v3/session', { body: { email: `${user.apiKey}\0`, password: account.token } }),
    call('POST', account.path('/subscriptions'), {
      token: account.token,
      body: { name: 5, client_url: `https://user:${password}@example.com/`, event_types: [user.apiKey] },
    }),
    call('GET', `/api/v3/${encodeURIComponent(password)}?token=${account.token}`, {}),
    call('GET', account.path(`/subscription/${created.hmac_secret.replaceAll('/', '_')}`), {
      token: account.token,
    }),
    call('DELETE', '/api/v3/session', { headers: { cookie: `runhook_session=${sessionId}` } }),
  ];
  for (const { status, json } of await Promise.all(mistakes)) {
    expect(status).toBeGreaterThanOrEqual(400);
    rejections.push(JSON.stringify(json));
  }
}

/** Returns the contents of every table of every schema: each row as text, and its bytes decoded. */
async function dump(): Promise<Map<string, string>> {
  const { pool } = harness.database;
  const { rows } = await pool.query<{ name: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
     WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const tables = new Map<string, string>();
  for (const { name } of rows) {
    const table = await pool.query<{ row: Record<string, unknown>; text: string }>(
      `SELECT to_jsonb(t) AS row, t::text AS text FROM ${name} t`,
    );
    const texts = table.rows.map(({ row, text }) => text + bytesOf(Object.values(row)));
    tables.set(name, texts.join('\n'));
  }
  return tables;
}

/** Decodes bytes, because a dump shows them as hexadecimal digits. */
function bytesOf(values: unknown[]): string {
  return values
    .filter((value): value is string => typeof value === 'string' && value.startsWith('\\x'))
    .map((value) => Buffer.from(value.slice(2), 'hex').toString('latin1'))
    .join();
}

describe('API keys, service tokens, hmac_secrets, session ids and passwords', () => {
  test('do not appear in a dump of the database', async () => {
    const tables = await dump();
    for (const table of ['users', 'service_tokens', 'subscriptions', 'console_sessions', 'rate_limits']) {
      expect(tables.get(`public.${table}`)).not.toBe('');
    }
    expect([...tables.keys()].filter((name) => name.startsWith('bullmq.')).length).toBeGreaterThan(0);
    const exposures = [...tables].flatMap(([table, text]) =>
      secretsInClear(text).map((name) => `${table}: ${name}`),
    );
    expect(exposures).toEqual([]);
  });

  test('do not appear in the log at any level', () => {
    expect(logged.filter((logLine) => logLine.includes('"request"')).length).toBeGreaterThan(15);
    expect(logged.flatMap(secretsInClear)).toEqual([]);
  });

  test('do not appear in error responses', () => {
    expect(rejections).toHaveLength(10);
    expect(rejections.flatMap(secretsInClear)).toEqual([]);
  });

  test('would be found by these tests', async () => {
    const apiKey = secrets.get('third API key') ?? '';
    expect(secretsInClear(`{"msg":"${apiKey}"}`)).toEqual(['third API key']);
    await harness.database.pool.query('CREATE TABLE spill (bytes bytea)');
    await harness.database.pool.query('INSERT INTO spill VALUES ($1)', [Buffer.from(apiKey)]);
    expect(secretsInClear((await dump()).get('public.spill') ?? '')).toEqual(['third API key']);
  });
});
