import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type PostgresOptions, type RunningPostgres, startPostgres } from '@runhook/embedded';
import { Client } from 'pg';

/** A coordinator and workers of Citus, each with the databases that the others have. */
export interface SpreadPostgres {
  /** The coordinator's first. */
  urls: string[];
  killWorker(): Promise<void>;
  /** The one that was killed, on the port that it had. */
  startWorker(): Promise<void>;
  close(): Promise<void>;
}

/** Where the record is spread: the workers of TEST_POSTGRES_URL, which the servers of `npm run prove -- citus` have. */
export function workerUrls(): string[] {
  return (process.env.TEST_WORKER_URLS ?? '').split(',').filter((url) => url !== '');
}

const WORKERS = ['worker-1', 'worker-2'];
/** All of them have the same, so that they may ask each other. */
const PASSWORD = 'spread';
const SETTINGS = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical',
  max_connections: '300',
  max_prepared_transactions: '600',
  'citus.node_conninfo': 'sslmode=prefer',
  // No word to anybody.
  'citus.enable_statistics_collection': 'off',
};

/**
 * @param bin the folder with the programs of a PostgreSQL that has Citus
 * @param folder for the data; other accounts must be let pass
 */
export async function startSpreadPostgres(
  bin: string,
  folder: string,
  settings: Record<string, string> = {},
): Promise<SpreadPostgres> {
  const binaries = { folder: dirname(bin), version: 'given' };
  const start = (name: string, rest: Pick<PostgresOptions, 'port'> = {}) =>
    startPostgres({
      dataDir: join(folder, name),
      ...rest,
      settings: { ...SETTINGS, ...settings },
      internals: { binaries },
    });
  const servers: RunningPostgres[] = [];
  const close = async () => {
    for (const server of servers.splice(0).reverse()) await server.stop();
  };
  try {
    for (const name of ['coordinator', ...WORKERS]) {
      const server = await start(name);
      servers.push(server);
      await ask(server.url, `ALTER ROLE CURRENT_USER PASSWORD '${PASSWORD}'`);
      await writeFile(join(folder, name, 'password'), PASSWORD);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    urls: servers.map(({ url }) => Object.assign(new URL(url), { password: PASSWORD }).href),
    killWorker: async () => await servers.at(-1)?.kill(),
    startWorker: async () => {
      const port = servers.at(-1)?.port;
      servers[WORKERS.length] = await start(WORKERS.at(-1) ?? '', port === undefined ? {} : { port });
    },
    close,
  };
}

const COLOCATED = ['undispatched_events', 'deliveries', 'attempts'];
/** The tables that are divided by account; all others stay on the coordinator. */
export const DISTRIBUTED_TABLES: readonly string[] = ['events', ...COLOCATED];

/** SQL: the partition that a row of the log is in. On Citus the name of the table, without the number of its shard. */
export const PARTITION_OF_ROW = `regexp_replace(tableoid::regclass::text, '_[0-9]{6}$', '')`;

/** docs/scaling.md#a-record-that-can-be-spread tells the same to operators. */
const SPREAD = [
  `SELECT create_distributed_table('events', 'account_id')`,
  ...COLOCATED.map(
    (table) => `SELECT create_distributed_table('${table}', 'account_id', colocate_with => 'events')`,
  ),
];

/** @param urls of a migrated database, the coordinator's, and of the empty ones of its name on the workers */
export async function spreadRecord(urls: readonly string[]): Promise<void> {
  const [coordinator = '', ...workers] = urls;
  for (const url of urls) {
    await ask(url, 'CREATE EXTENSION citus');
    await ask(url, `INSERT INTO pg_dist_authinfo VALUES (0, current_user, 'password=${PASSWORD}')`);
  }
  const portOf = (url: string) => new URL(url).port;
  await ask(coordinator, `SELECT citus_set_coordinator_host('127.0.0.1', ${portOf(coordinator)})`);
  for (const url of workers) await ask(coordinator, `SELECT citus_add_node('127.0.0.1', ${portOf(url)})`);
  for (const statement of SPREAD) await ask(coordinator, statement);
}

async function ask(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
