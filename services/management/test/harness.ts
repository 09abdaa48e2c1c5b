import { randomBytes } from 'node:crypto';
import type { Deployment, Plan } from '@runhook/contract';
import {
  addMembership,
  createAccount,
  createCredential,
  createJob,
  createSecretBox,
  createServiceToken,
  hashCredential,
  type License,
  type PermissionSet,
  type SecretBox,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, createTestQueueUrl, queueBackends, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { createManagement, type Management } from '../src/app.ts';
import type { Timeouts } from '../src/resources.ts';
import type { Settings } from '../src/settings.ts';
import { checkedFetch } from './checked-fetch.ts';

// biome-ignore lint/suspicious/noExplicitAny: an answer as a client reads it
export type Json = any;

export interface ApiResult {
  status: number;
  headers: Headers;
  json: Json;
}

export interface CallOptions {
  token?: string;
  /** Sent as JSON; a string is sent unchanged. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestAccount {
  id: number;
  identifier: string;
  /** A service token with `account_admin`, which has all permissions. */
  token: string;
  /** Returns `/api/v3/accounts/<id>/webhooks` followed by `suffix`. */
  path(suffix: string): string;
}

export const PASSWORD = 'correct horse battery staple';

/**
 * A hash of {@link PASSWORD} by Argon2id with its cheapest parameters: creating or verifying one with those of the
 * product takes 12 ms of CPU and 19 MiB. The tests of the admin commands create users with a real one.
 */
const PASSWORD_HASH =
  '$argon2id$v=19$m=8,t=1,p=1$cGfYkxPlJIzWNzUQvnHqgw$/JxwJFUhfR+akFdrfdbUtax1PqCZJdN2Gvlu2yJo3kA';

/** A user with {@link PASSWORD}. */
export interface TestUser {
  id: number;
  email: string;
  apiKey: string;
}

/** A second process of the service, simulated in this one, with the same database and queue. */
export interface SecondManagement {
  origin: string;
  /** Origin of the metrics. */
  operationsOrigin: string;
  call: Harness['call'];
  close(): Promise<void>;
}

/** The service in this process, on a free port, with its own database and queue. */
export interface Harness {
  origin: string;
  /** Origin of the metrics. */
  operationsOrigin: string;
  /** Mounted endpoints as Express patterns. */
  endpoints: Management['endpoints'];
  settings: Settings;
  database: PrismaDatabase;
  secrets: SecretBox;
  call(method: string, path: string, options?: CallOptions): Promise<ApiResult>;
  newAccount(account?: { plan?: Plan; deployment?: Deployment }): Promise<TestAccount>;
  newToken(account: TestAccount, permissionSets: PermissionSet[], expiresAt?: Date): Promise<string>;
  newUser(account: TestAccount, license: License, permissionSets: PermissionSet[]): Promise<TestUser>;
  /** Signs in to the console; returns the headers of requests from its pages. */
  signIn(user: { email: string }): Promise<Record<string, string>>;
  startSecond(overrides?: Partial<Settings>, timeouts?: Timeouts): Promise<SecondManagement>;
  newJob(account: TestAccount): Promise<number>;
  newSubscription(account: TestAccount, fields?: object): Promise<Json>;
  /** Number of committed events that the queue has not accepted yet. */
  relayWaiting(): Promise<number>;
  /** Number of rows of each table in {@link TABLES}. */
  rowCounts(): Promise<Record<string, number>>;
  close(): Promise<void>;
}

export const SUBSCRIPTION_FIELDS = {
  name: 'Runs to the pager',
  event_types: ['job.run.completed', 'job.run.errored'],
  client_url: 'https://receiver.example.com/hooks',
};

/** Timeouts for tests that do not simulate an outage: a busy machine is slow but available. */
export const GENEROUS_TIMEOUTS = {
  requestMs: WAIT_TIMEOUT_MS,
  databaseMs: WAIT_TIMEOUT_MS,
  queueMs: WAIT_TIMEOUT_MS,
  countMs: WAIT_TIMEOUT_MS,
} as const satisfies Timeouts;

/**
 * The service has the role of management, and `database` of the result a superuser's.
 * @param overrides settings, or a function that makes them from a superuser's URL of the test's database
 * @param options stream of the log, and folder of a built console, none when omitted; timeouts, {@link
 * GENEROUS_TIMEOUTS} when omitted
 */
export async function startHarness(
  overrides: Partial<Settings> | ((databaseUrl: string) => Promise<Partial<Settings>>) = {},
  options: Parameters<typeof createManagement>[1] = {},
): Promise<Harness> {
  const testDatabase = await createTestDatabase();
  const backend = queueBackends().at(-1) ?? { name: 'PostgreSQL' };
  const settings: Settings = {
    databaseUrl: testDatabase.managementUrl,
    databaseReplicaMaxLagMs: 5_000,
    queueUrl: await createTestQueueUrl(backend, testDatabase.managementUrl),
    encryptionKeys: [{ name: 'test', key: randomBytes(32) }],
    port: 0,
    operationsPort: 0,
    host: '127.0.0.1',
    deliveryTimeoutMs: 10_000,
    deliveryMaxRetries: 5,
    egressAllowCidrs: [],
    egressDenyCidrs: [],
    egressPorts: [],
    egressRequireHttps: false,
    egressSourceAddresses: [],
    apiRateLimitPerMinute: 5_000,
    apiConcurrencyPerAccount: 500,
    subscriptionsPerAccount: 1_000,
    jobsPerAccount: 10_000,
    runStepsBytesPerAccount: 1_000_000_000,
    pendingDeliveriesPerAccount: 100_000,
    idempotencyKeysPerDay: 1_000_000,
    securityContact: [],
    logRetentionDays: 30,
    consoleSessionIdleMinutes: 60,
    consoleSessionMaxHours: 24,
    signInAttemptsPerEmail: 1_000,
    signInAttemptsPerAddress: 1_000,
    oidcCreateUsers: false,
    passwordSignIn: 'on',
    trustedProxyCidrs: [],
    logLevel: 'silent',
    ...(typeof overrides === 'function' ? await overrides(testDatabase.url) : overrides),
  };
  const database = openPrismaDatabase({
    url: testDatabase.url,
    connectionsMax: 2,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  const secrets = createSecretBox(settings.encryptionKeys);
  const management = await createManagement(settings, {
    consoleFolder: null,
    timeouts: GENEROUS_TIMEOUTS,
    ...options,
  });
  const origin = `http://127.0.0.1:${management.port}`;
  let emails = 0;

  const call = (method: string, path: string, options: CallOptions = {}) =>
    callApi(origin, method, path, options);

  const newToken: Harness['newToken'] = async ({ id }, permissionSets, expiresAt) => {
    const token = { accountId: id, name: 'a token', permissionSets, ...(expiresAt ? { expiresAt } : {}) };
    return (await createServiceToken(database.prisma, token)).token;
  };

  return {
    origin,
    operationsOrigin: `http://127.0.0.1:${management.operationsPort}`,
    endpoints: management.endpoints,
    settings,
    database,
    secrets,
    call,
    newToken,
    async newAccount({ plan = 'enterprise', deployment = 'multi_tenant' } = {}) {
      const { id, identifier } = await createAccount(database.prisma, { name: 'Acme', plan, deployment });
      const account = {
        id,
        identifier,
        token: '',
        path: (suffix: string) => `/api/v3/accounts/${id}/webhooks${suffix}`,
      };
      return { ...account, token: await newToken(account, ['account_admin']) };
    },
    async newUser(account, license, permissionSets) {
      const email = `user${++emails}@example.com`;
      const apiKey = createCredential('user');
      const user = await database.prisma.user.create({
        data: {
          email,
          name: 'Ada',
          passwordHash: PASSWORD_HASH,
          apiKeyHash: hashCredential(apiKey),
          apiKeyCiphertext: secrets.encrypt(apiKey),
        },
      });
      const id = Number(user.id);
      await addMembership(database.prisma, { accountId: account.id, userId: id, license, permissionSets });
      return { id, email, apiKey };
    },
    async signIn({ email }) {
      const { status, headers, json } = await call('POST', '/api/v3/session', {
        body: { email, password: PASSWORD },
      });
      if (status !== 201) throw new Error(JSON.stringify(json));
      return { cookie: cookieOf(headers), 'sec-fetch-site': 'same-origin' };
    },
    async startSecond(overridden = {}, timeouts = GENEROUS_TIMEOUTS) {
      const second = await createManagement(
        { ...settings, ...overridden },
        { consoleFolder: null, timeouts },
      );
      const secondOrigin = `http://127.0.0.1:${second.port}`;
      return {
        origin: secondOrigin,
        operationsOrigin: `http://127.0.0.1:${second.operationsPort}`,
        call: (method, path, options = {}) => callApi(secondOrigin, method, path, options),
        close: () => second.close(),
      };
    },
    async newJob({ id: accountId }) {
      const job = { accountId, name: 'Daily', projectName: 'Analytics', environmentName: 'Production' };
      return (await createJob(database.prisma, job)).id;
    },
    async newSubscription(account, fields = {}) {
      const { token } = account;
      const body = { ...SUBSCRIPTION_FIELDS, ...fields };
      const { status, json } = await call('POST', account.path('/subscriptions'), { token, body });
      if (status !== 201) throw new Error(JSON.stringify(json));
      return json.data;
    },
    relayWaiting: async () => {
      const text = await (await fetch(`http://127.0.0.1:${management.operationsPort}/metrics`)).text();
      return Number(/^runhook_relay_events\{.*\} (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
    },
    rowCounts: () => countRows(database),
    async close() {
      await management.close();
      await database.close();
      await testDatabase.drop();
    },
  };
}

/**
 * @param send compares every response with the OpenAPI document by default; tests with other endpoints pass plain
 * `fetch`
 */
export async function callApi(
  origin: string,
  method: string,
  path: string,
  { token, body, headers = {} }: CallOptions = {},
  send: typeof fetch = checkedFetch,
): Promise<ApiResult> {
  const response = await send(origin + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Token ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: text === '' ? null : JSON.parse(text) };
}

/** Returns the `Cookie` header that a browser would send. */
export function cookieOf(headers: Headers): string {
  return (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
}

/** Returns a complete error response. `developerMessage` is "" by default; a 400 has its lines as `errors`, too. */
export function failure(code: number, userMessage: string, developerMessage = '') {
  const status = { code, is_success: false, user_message: userMessage, developer_message: developerMessage };
  if (code !== 400) return { status, data: null };
  const errors = developerMessage.split('\n').map((line) => {
    const [field = ''] = line.split(': ', 1);
    return { field, message: line.slice(field.length + 2) };
  });
  return { status: { ...status, errors }, data: null };
}

const TABLES = ['subscriptions', 'deliveries', 'attempts', 'events', 'runs', 'jobs', 'recoveries'];

async function countRows({ pool }: PrismaDatabase): Promise<Record<string, number>> {
  const columns = TABLES.map((table) => `(SELECT count(*)::int FROM ${table}) AS ${table}`).join(', ');
  const { rows } = await pool.query(`SELECT ${columns}`);
  return rows[0];
}
