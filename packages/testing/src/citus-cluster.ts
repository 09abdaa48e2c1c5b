import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type PostgresOptions, type RunningPostgres, startPostgres } from '@runhook/embedded';
import { Client } from 'pg';

/** A coordinator and workers of Citus, which have the same databases. */
export interface CitusCluster {
  /** The first URL is the coordinator's. */
  urls: string[];
  killWorker(): Promise<void>;
  /** Restarts the killed worker on its previous port. */
  startWorker(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Returns the workers of the server of TEST_POSTGRES_URL if its tables are distributed, as on the servers of `npm run
 * prove -- citus`.
 */
export function workerUrls(): string[] {
  return (process.env.TEST_WORKER_URLS ?? '').split(',').filter((url) => url !== '');
}

const WORKERS = ['worker-1', 'worker-2'];
/** All servers have the same password, so that they can connect to each other. */
const PASSWORD = 'spread';
const SETTINGS = {
  shared_preload_libraries: 'citus',
  wal_level: 'logical',
  max_connections: '300',
  max_prepared_transactions: '600',
  'citus.node_conninfo': 'sslmode=prefer',
  // Sends no statistics to the vendor.
  'citus.enable_statistics_collection': 'off',
};

/**
 * @param bin folder with the programs of a PostgreSQL that has Citus
 * @param folder for the data; other accounts must be able to traverse it
 */
export async function startCitusCluster(
  bin: string,
  folder: string,
  settings: Record<string, string> = {},
): Promise<CitusCluster> {
  const binaries = { folder: dirname(bin), version: 'given' };
  const start = (name: string, options: Pick<PostgresOptions, 'port'> = {}) =>
    startPostgres({
      dataDir: join(folder, name),
      ...options,
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
      await executeStatement(server.url, `ALTER ROLE CURRENT_USER PASSWORD '${PASSWORD}'`);
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

const COLOCATED_TABLES = ['undispatched_events', 'deliveries', 'attempts', 'run_steps', 'run_steps_usage'];
/** The tables that are distributed by account; all others are on the coordinator. */
export const DISTRIBUTED_TABLES: readonly string[] = ['events', ...COLOCATED_TABLES];

/** SQL for the partition of a row of the log. On Citus it is the name of the table without the number of its shard. */
export const PARTITION_OF_ROW = `regexp_replace(tableoid::regclass::text, '_[0-9]{6}$', '')`;

/** Must match the instructions for operators in docs/scaling.md#a-record-that-can-be-spread. */
const DISTRIBUTION_STATEMENTS = [
  `SELECT create_distributed_table('events', 'account_id')`,
  ...COLOCATED_TABLES.map(
    (table) => `SELECT create_distributed_table('${table}', 'account_id', colocate_with => 'events')`,
  ),
];

/** @param urls URL of a migrated database on the coordinator, and of the empty ones of the same name on the workers */
export async function distributeRecord(urls: readonly string[]): Promise<void> {
  const [coordinator = '', ...workers] = urls;
  for (const url of urls) {
    await executeStatement(url, 'CREATE EXTENSION citus');
    await executeStatement(
      url,
      `INSERT INTO pg_dist_authinfo VALUES (0, current_user, 'password=${PASSWORD}')`,
    );
  }
  const portOf = (url: string) => new URL(url).port;
  await executeStatement(
    coordinator,
    `SELECT citus_set_coordinator_host('127.0.0.1', ${portOf(coordinator)})`,
  );
  for (const url of workers)
    await executeStatement(coordinator, `SELECT citus_add_node('127.0.0.1', ${portOf(url)})`);
  for (const statement of DISTRIBUTION_STATEMENTS) await executeStatement(coordinator, statement);
}

async function executeStatement(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
