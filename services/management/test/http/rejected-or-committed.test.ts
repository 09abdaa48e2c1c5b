import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { eventually, type Receiver, startReceiver } from '@runhook/testing';
import {
  type ApiResult,
  GENEROUS_TIMEOUTS,
  type Harness,
  type SecondManagement,
  startHarness,
  type TestAccount,
} from '../harness.ts';
import { isKeyed, newRun, WRITES, type Write } from './writes.ts';

/**
 * Deadline of requests in this test: less than the 5 s after which a statement that waits for a lock fails with its
 * transaction.
 */
const REQUEST_MS = 500;

let harness: Harness;
let receiver: Receiver;
/** Another process of the service, which rejects a request after {@link REQUEST_MS}. */
let shortDeadline: SecondManagement;
let account: TestAccount;

beforeAll(async () => {
  receiver = await startReceiver();
  harness = await startHarness({ egressAllowCidrs: ['127.0.0.0/8'] });
  shortDeadline = await harness.startSecond(
    { deliveryTimeoutMs: 100 },
    { ...GENEROUS_TIMEOUTS, requestMs: REQUEST_MS },
  );
});
beforeEach(async () => {
  account = await harness.newAccount();
});
afterAll(async () => {
  await shortDeadline.close();
  await harness.close();
  await receiver.close();
});

const methodOf = (route: string) => route.split(' ', 1)[0] ?? '';
const isPublic = ({ path }: Write) => path === '/api/v3/session';

function sendTo({ call }: Pick<SecondManagement, 'call'>, route: string, write: Write): Promise<ApiResult> {
  const { path, ...options } = write;
  return call(methodOf(route), path, options);
}

/** Locks the tables until the work has responded. */
async function whileLocked<T>(lock: string, work: () => Promise<T>): Promise<T> {
  const locker = await harness.database.pool.connect();
  try {
    await locker.query(`BEGIN; LOCK TABLE ${lock} MODE`);
    return await work();
  } finally {
    await locker.query('COMMIT');
    locker.release();
  }
}

const TABLES = [
  'subscriptions',
  'deliveries',
  'recoveries',
  'events',
  'runs',
  'artifacts',
  'jobs',
  'console_sessions',
];

/** Reads {@link TABLES}, the users, and the number of requests that the receiver got. */
async function readAllTables(): Promise<unknown> {
  const { pool } = harness.database;
  const contents = await Promise.all(
    [...TABLES, 'users'].map(async (table) => {
      const { rows } = await pool.query(
        `SELECT to_jsonb(t) AS row FROM ${table} t ORDER BY to_jsonb(t)::text`,
      );
      return [table, rows];
    }),
  );
  return { ...Object.fromEntries(contents), received: receiver.requests.length };
}

/** Needs a token that an identity provider has signed (oidc/oidc-access.test.ts); its work is one statement. */
const LOGOUT = '/api/v3/session/oidc/logout';

test('the list WRITES contains every route that changes something', () => {
  const writing = harness.endpoints.filter(({ method, path }) => method !== 'GET' && path !== LOGOUT);
  const routes = writing.map(({ method, path }) => `${method} ${path}`);
  expect(WRITES.map(([route]) => route)).toEqual(expect.arrayContaining(routes));
});

/** Selects the keys of requests that are still running. */
const PENDING_KEYS = 'SELECT FROM idempotency_keys WHERE response_ciphertext IS NULL';
const BUSY_SESSIONS = `
  SELECT FROM pg_stat_activity
  WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()`;

/** Waits until no transaction is open and no key is in use, so that the work of rejected requests has ended. */
async function waitForIdle(): Promise<void> {
  const { pool } = harness.database;
  await eventually(async () => {
    for (const query of [BUSY_SESSIONS, PENDING_KEYS]) expect((await pool.query(query)).rows).toEqual([]);
  });
}

interface Prepared {
  route: string;
  write: Write;
}

/** Prepares the route for a new account, so that no write waits for a slot of another. */
async function prepareWrite([route, prepare]: (typeof WRITES)[number], headers = {}): Promise<Prepared> {
  account = await harness.newAccount();
  const { token } = account;
  const prepared = await prepare({ harness, account, receiver });
  const isSession = prepared.headers !== undefined && prepared.token === undefined;
  const allHeaders = { ...headers, ...prepared.headers };
  return {
    route,
    write: { ...(isPublic(prepared) || isSession ? {} : { token }), ...prepared, headers: allHeaders },
  };
}

/** Writes that wait for the same lock run concurrently, because a waiting report is rejected only after 5 s. */
const LOCKS = [...new Set(WRITES.map(([, , lock]) => lock))];

describe.each(LOCKS)('while the tables are locked (%s)', (lock) => {
  const locked = WRITES.filter((one) => one[2] === lock);
  const withKey = locked.filter(([route]) => isKeyed(route));
  const keyed = new Map<string, Write>();
  const statuses: [route: string, status: number][] = [];
  let contentsBefore: unknown;
  let contentsAfter: unknown;

  beforeAll(async () => {
    const preparedWrites: Prepared[] = [];
    for (const one of locked) preparedWrites.push(await prepareWrite(one));
    for (const one of withKey) {
      const prepared = await prepareWrite(one, { 'idempotency-key': `key of ${one[0]}`.slice(0, 255) });
      keyed.set(prepared.route, prepared.write);
      preparedWrites.push(prepared);
    }
    contentsBefore = await readAllTables();
    await whileLocked(lock, () =>
      Promise.all(
        preparedWrites.map(async ({ route, write }) => {
          statuses.push([route, (await sendTo(shortDeadline, route, write)).status]);
        }),
      ),
    );
    await waitForIdle();
    contentsAfter = await readAllTables();
  });

  test.each(locked)('%s is rejected at its deadline', (route) => {
    const expected = isKeyed(route) ? [503, 503] : [503];
    expect(statuses.filter(([of]) => of === route).map(([, status]) => status)).toEqual(expected);
  });

  test('the rejected requests have changed nothing', () => {
    expect(contentsAfter).toEqual(contentsBefore);
  });

  if (withKey.length === 0) return;
  test.each(withKey)('%s with an Idempotency-Key succeeds when it is repeated', async (route) => {
    const write = keyed.get(route) as Write;
    const repeated = await sendTo(harness, route, write);
    expect(repeated.status).toBeLessThan(300);
    expect(repeated.headers.get('idempotent-replay')).toBeNull();
    expect((await sendTo(harness, route, write)).headers.get('idempotent-replay')).toBe('true');
  });
});

test('no rejected request of many that wait for a slot and a connection is committed', async () => {
  const { token } = account;
  const write = { ...(await newRun({ harness, account, receiver })), token };
  const contentsBefore = await readAllTables();
  const responses = await whileLocked('runs IN SHARE', () =>
    Promise.all(Array.from({ length: 40 }, () => sendTo(shortDeadline, 'POST', write))),
  );
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([503]));
  await waitForIdle();
  expect(await readAllTables()).toEqual(contentsBefore);
});

const COMMITS_WAIT = `
  CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(12); RETURN NULL; END $$;
  CREATE CONSTRAINT TRIGGER commits_wait AFTER INSERT ON jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()`;

test('a request whose COMMIT is in progress at its deadline returns its result', async () => {
  const { pool } = harness.database;
  await pool.query(COMMITS_WAIT);
  const body = { name: 'Late', project_name: 'Analytics', environment_name: 'Production' };
  const locker = await pool.connect();
  try {
    await locker.query('BEGIN; SELECT pg_advisory_xact_lock(12)');
    const { id, token } = account;
    const response = sendTo(shortDeadline, 'POST', { path: `/api/v2/accounts/${id}/jobs/`, token, body });
    const committing = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    await eventually(async () => expect((await pool.query(committing)).rows).toHaveLength(1));
    // Waits until the deadline has passed, which no event signals.
    await wait(2 * REQUEST_MS);
    await locker.query('COMMIT');
    expect(await response).toMatchObject({ status: 201, json: { data: { name: 'Late' } } });
  } finally {
    locker.release();
    await pool.query('DROP TRIGGER commits_wait ON jobs');
  }
});
