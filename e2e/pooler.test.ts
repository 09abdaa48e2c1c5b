import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { createServiceToken, requirePreparedStatements } from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { readStartCommand } from '@runhook/embedded';
import {
  createTestDatabase,
  createTestQueueUrl,
  findPoolers,
  queueBackends,
  seedAccount,
  startPooler,
  startReceiver,
  type TestDatabase,
  testEncryptionKeysText,
} from '@runhook/testing';
import { startService } from './services.ts';

const CHECKOUT = fileURLToPath(new URL('..', import.meta.url));
const RUNS = 40;

let testDatabase: TestDatabase;
let database: PrismaDatabase;
let queueUrl: string;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = openPrismaDatabase({ url: testDatabase.url, connectionsMax: 2 });
  queueUrl = await createTestQueueUrl(queueBackends().at(-1) ?? { name: 'PostgreSQL' }, testDatabase.url);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

/** Runs a program of this checkout. Resolves with its exit code, standard output and standard error. */
async function runProgram(file: string, args: string[], url: string) {
  const environment = { DATABASE_URL: url, QUEUE_URL: queueUrl, PORT: '0', OPERATIONS_PORT: '0' };
  const child = spawn(process.execPath, [join(CHECKOUT, file), ...args], {
    env: { ...environment, ENCRYPTION_KEYS: testEncryptionKeysText, HOST: '127.0.0.1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  const [code] = await once(child, 'close');
  return { code, ...output };
}

const poolers = findPoolers();
const trackingPoolers = poolers.filter(({ tracksStatements }) => tracksStatements);

/** Jest rejects an empty table. `npm test` prints at its end why a pooler is missing. */
function describePoolers(
  some: typeof poolers,
  title: string,
  body: (pooler: (typeof poolers)[number]) => void,
) {
  if (some.length > 0) describe.each(some)(title, body);
  else test.skip(`${title}: this machine has none`, () => {});
}

test('prepared statements work without a pooler', async () => {
  await requirePreparedStatements({ url: testDatabase.url });
});

describePoolers(poolers, 'behind PgBouncer $version', (pooler) => {
  async function connectThrough(settings: Record<string, string>): Promise<string> {
    const { url, close } = await startPooler(pooler, testDatabase.url, settings);
    closers.push(close);
    return url;
  }
  const sessionPooler = {
    pool_mode: 'transaction',
    ...(pooler.tracksStatements && { max_prepared_statements: '0' }),
  };

  test('prepared statements work in session mode', async () => {
    await requirePreparedStatements({ url: await connectThrough({ pool_mode: 'session' }) });
  });

  test.each(['0', '1'])(
    'prepared statements fail in transaction mode without tracking, with server_round_robin = %s',
    async (server_round_robin) => {
      const url = await connectThrough({ ...sessionPooler, server_round_robin });
      const { pool, close } = openPrismaDatabase({ url, connectionsMax: 3 });
      // Opens several idle connections of the server for the pooler to choose from: an open transaction occupies one.
      const clients = await Promise.all([1, 2, 3].map(() => pool.connect()));
      await Promise.all(clients.map((client) => client.query('BEGIN')));
      await Promise.all(clients.map((client) => client.query('COMMIT')));
      for (const client of clients) client.release();
      await close();
      await expect(requirePreparedStatements({ url })).rejects.toMatchObject({
        code: expect.stringMatching(/^(42P05|26000)$/),
      });
    },
  );

  test('the services do not start in transaction mode without tracking, and print the required settings', async () => {
    const url = await connectThrough(sessionPooler);
    for (const name of ['management', 'dispatcher'] as const) {
      const { code, stderr } = await runProgram(readStartCommand(name).program, [], url);
      expect([name, code, stderr]).toEqual([
        name,
        1,
        expect.stringMatching(
          /^The pooler of DATABASE_URL loses prepared statements: set pool_mode = session, or use PgBouncer 1\.21 or newer with max_prepared_statements = 200: .*\n$/,
        ),
      ]);
    }
    const { code, stdout } = await runProgram('services/management/dist/admin.js', ['doctor'], url);
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(
        /FAILED +pooler +does not support prepared statements.*\n.*→ .*max_prepared_statements = 200/,
      ),
    ]);
  });
});

describePoolers(trackingPoolers, 'behind PgBouncer $version with max_prepared_statements = 200', (pooler) => {
  test('the services deliver the events of many runs that are reported concurrently', async () => {
    const settings = { pool_mode: 'transaction', max_prepared_statements: '200', default_pool_size: '5' };
    const { url, close } = await startPooler(pooler, testDatabase.url, settings);
    closers.push(close);
    const environment = { DATABASE_URL: url, QUEUE_URL: queueUrl };
    const [management, dispatcher] = await Promise.all(
      (['management', 'dispatcher'] as const).map((name) => startService(name, environment)),
    );
    closers.push(
      async () => await dispatcher?.stop(),
      async () => await management?.stop(),
    );
    const receiver = await startReceiver();
    closers.push(() => receiver.close());
    const account = await seedAccount(database);
    const { token } = await createServiceToken(database.prisma, {
      accountId: account.id,
      name: 'a token',
      permissionSets: ['account_admin'],
    });
    const post = async (path: string, body: object) => {
      const response = await fetch(`${management?.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Token ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      expect([path, response.status]).toEqual([path, 201]);
    };
    await post(`/api/v3/accounts/${account.id}/webhooks/subscriptions`, {
      name: 'All',
      event_types: ['job.run.started'],
      client_url: receiver.url,
    });
    const start = { job_id: account.jobs[0]?.id, engine_version: '1.9' };
    await Promise.all(
      Array.from({ length: RUNS }, () => post(`/api/v2/accounts/${account.id}/runs/`, start)),
    );
    await receiver.waitFor(RUNS);
  });
});
