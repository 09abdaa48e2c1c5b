import { randomBytes } from 'node:crypto';
import { ensureDayPartitions, openDatabase } from '@runhook/database';
import { Client, escapeIdentifier } from 'pg';
import { distributeRecord, workerUrls } from './citus-cluster.ts';
import {
  prepareDatabase,
  type ServiceUrls,
  serviceUrls,
  TEST_DATABASE_PREFIX,
  TEST_ROLES,
} from './service-roles.ts';

const TEMPLATE = 'runhook_template';

export interface TestDatabase extends ServiceUrls {
  /** `postgres://…/runhook_test_…` of a superuser. */
  url: string;
  /** Terminates the remaining connections and drops the database. */
  drop(): Promise<void>;
}

/** Creates the template of all test databases: empty and migrated. Replaces an existing one. */
export async function prepareTemplate(postgresUrl: string): Promise<void> {
  const servers = [postgresUrl, ...workerUrls()];
  await forEachServer(servers, async (client) => {
    await client.query(`DROP DATABASE IF EXISTS ${TEMPLATE} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${TEMPLATE}`);
  });
  await prepareDatabase(databaseUrl(postgresUrl, TEMPLATE));
  await createDayPartitions(databaseUrl(postgresUrl, TEMPLATE));
  if (servers.length > 1) await distributeRecord(servers.map((url) => databaseUrl(url, TEMPLATE)));
  await forEachServer(servers, async (client) => {
    // A database with connections cannot be copied.
    await client.query(`ALTER DATABASE ${TEMPLATE} WITH ALLOW_CONNECTIONS false`);
    await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
      TEMPLATE,
    ]);
  });
}

/** Creates the day partitions in the template, which costs less than creating them when each service starts. */
async function createDayPartitions(url: string): Promise<void> {
  const { pool, close } = openDatabase({ url, connectionsMax: 1 });
  try {
    await ensureDayPartitions(pool);
  } finally {
    await close();
  }
}

/**
 * Creates a migrated database for a test, empty except for the current day partitions, on the server of
 * TEST_POSTGRES_URL.
 */
export async function createTestDatabase({ hasDayPartitions = true } = {}): Promise<TestDatabase> {
  const postgresUrl = process.env.TEST_POSTGRES_URL;
  if (postgresUrl === undefined) {
    throw new Error(
      'TEST_POSTGRES_URL is not set: run the tests with `npm test` or `node scripts/test.mjs <path>`',
    );
  }
  const name = `${namePrefix(process.env.TEST_RUN_ID)}${randomBytes(8).toString('hex')}`;
  const servers = [postgresUrl, ...workerUrls()];
  // Copying files is faster for a small template than writing each page to the log.
  const create = `CREATE DATABASE ${name} TEMPLATE ${TEMPLATE} STRATEGY FILE_COPY`;
  await forEachServer(servers, (client) => client.query(create));
  const url = databaseUrl(postgresUrl, name);
  if (!hasDayPartitions) await withClient(url, (client) => client.query(DROP_DAY_PARTITIONS));
  return {
    url,
    ...serviceUrls(url),
    drop: () => forEachServer(servers, (client) => dropDatabase(client, name)),
  };
}

const OBJECT_IN_USE = '55006';
const DROPS_MAX = 5;

/** Terminates all connections; a daemon of Citus may reconnect before the database is dropped. */
async function dropDatabase(client: Client, name: string, attempt = 1): Promise<void> {
  try {
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== OBJECT_IN_USE || attempt === DROPS_MAX) throw error;
    await dropDatabase(client, name, attempt + 1);
  }
}

const DROP_DAY_PARTITIONS = `
  DO $$ BEGIN
    EXECUTE (SELECT 'DROP TABLE ' || string_agg(oid::regclass::text, ', ') FROM pg_class
             WHERE relkind = 'r' AND relname ~ '^(events|deliveries|attempts)_[0-9]{8}$');
  END $$`;

/** Drops the template, the databases of this run's tests (TEST_RUN_ID) and the roles, on a server that outlives the run. */
export async function removeTestDatabases(postgresUrl: string, runId: string): Promise<void> {
  await withClient(postgresUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE starts_with(datname, $1) OR datname = $2',
      [namePrefix(runId), TEMPLATE],
    );
    for (const { datname } of rows) {
      await client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(datname)} WITH (FORCE)`);
    }
    const roles = [TEST_ROLES.owner, TEST_ROLES.management.name, TEST_ROLES.dispatcher.name];
    // Another run on the server may still use them.
    for (const role of roles) await client.query(`DROP ROLE IF EXISTS ${role}`).catch(() => undefined);
  });
}

/** Calls a function for one server after the other; a distributed record has a database of the same name on each. */
async function forEachServer(
  urls: readonly string[],
  use: (client: Client) => Promise<unknown>,
): Promise<void> {
  for (const url of urls) await withClient(url, use);
}

function namePrefix(runId: string | undefined): string {
  const runIdPart = (runId ?? '').replace(/[^a-z0-9]/g, '');
  return runIdPart === '' ? TEST_DATABASE_PREFIX : `${TEST_DATABASE_PREFIX}${runIdPart}_`;
}

function databaseUrl(postgresUrl: string, name: string): string {
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  return url.href;
}

async function withClient<T>(url: string, use: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
