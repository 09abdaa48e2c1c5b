import { createRequire } from 'node:module';
import { JOB_RUN_EVENTS, JOB_RUN_REQUESTS, MAINTENANCE, WEBHOOK_DELIVERIES } from '@runhook/contract';
import {
  type createPostgresBackend,
  type IQueueBackend,
  PostgresQueueBackend,
  type Processor,
  type Queue,
  runMigrations,
  type Telemetry,
  type Worker,
  withBackend,
} from 'bullmq';
import type pg from 'pg';
import { createPatchedBackend, POSTGRES_SCHEMA } from '../patches/bullmq/postgres-backend.ts';
import type { BackendKind, Connector, JobState, TunedWorkerOptions } from './backend.ts';
import { parseJsonb } from './jsonb.ts';
import { listWorkers } from './worker-names.ts';

/** Maximum number of connections of each queue and worker; on Redis one or two suffice. */
const CONNECTIONS_MAX = 4;
const CONNECT_TIMEOUT_MS = 10_000;
/** Statement timeout, as a share of `silentMs`. */
const QUERY_SHARE = 2 / 3;
/**
 * Number of jobs up to which they are added individually: BullMQ's bulk function creates two temporary tables, 5 ms of
 * the server's CPU a call, ten times a single job (ADR 27).
 */
const SINGLE_ADD_MAX = 8;

export const postgres: BackendKind<'PostgreSQL'> = {
  name: 'PostgreSQL',
  schemes: ['postgres', 'postgresql'],
  // Connecting reports an invalid URL.
  checkUrl: () => undefined,
  connect,
  migrate,
};

/** Loads the driver with the first queue on PostgreSQL, as BullMQ does: publishers over Redis need no driver. */
function loadDriver(): typeof pg {
  try {
    return createRequire(import.meta.url)('pg');
  } catch (cause) {
    throw new Error('a queue in PostgreSQL needs the package pg', { cause });
  }
}

/** Concurrent calls are serialized by an advisory lock of the transaction. */
async function migrate(connectionString: string, roles: readonly string[] = []): Promise<number> {
  const driver = loadDriver();
  const client = new driver.Client({
    connectionString,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: WITHOUT_JIT,
  });
  // Without a listener an error would end the process; the interrupted call rejects anyway.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const version = await runMigrations(client, POSTGRES_SCHEMA);
    const names = roles.map((role) => driver.escapeIdentifier(role)).join(', ');
    // One call is one transaction.
    await client.query([CREATE_ID_SEQUENCES, ...(names === '' ? [] : grantStatements(names))].join(';\n'));
    return version;
  } finally {
    await client.end();
  }
}

/** BullMQ creates the sequence of a queue's job ids with its first job, for which the services have no permission. */
const CREATE_ID_SEQUENCES = `
  DO $$ DECLARE queue text; BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('runhook.migrate_queue'));
    FOREACH queue IN ARRAY '{${[JOB_RUN_EVENTS, JOB_RUN_REQUESTS, WEBHOOK_DELIVERIES, MAINTENANCE].join()}}'::text[] LOOP
      EXECUTE format('CREATE SEQUENCE IF NOT EXISTS ${POSTGRES_SCHEMA}.%I', ${POSTGRES_SCHEMA}.job_id_seq_name(queue));
    END LOOP;
  END $$`;

/** Both services use the tables through BullMQ's functions, which have the rights of their caller. */
const grantStatements = (roles: string) => [
  `GRANT USAGE ON SCHEMA ${POSTGRES_SCHEMA} TO ${roles}`,
  `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${POSTGRES_SCHEMA} TO ${roles}`,
  `REVOKE INSERT, UPDATE, DELETE ON ${POSTGRES_SCHEMA}.migration FROM ${roles}`,
  `GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA ${POSTGRES_SCHEMA} TO ${roles}`,
];

function connect(connectionString: string, connectMs: number, silentMs: number): Connector {
  const createBackend: typeof createPostgresBackend = (...parameters) =>
    createPatchedBackend(silentMs, ...parameters);
  const Postgres = withBackend(createBackend);
  const connection = {
    connectionString,
    schema: POSTGRES_SCHEMA,
    migrate: false,
    max: CONNECTIONS_MAX,
    Client: listenedClient(loadDriver()),
    connectionTimeoutMillis: connectMs,
    query_timeout: silentMs * QUERY_SHARE,
  };
  return {
    shards: null,
    queuesWithJobs: async (queues) => new Set(queues),
    singleAddMax: SINGLE_ADD_MAX,
    isSpread: false,
    hasFailed,
    jobStates,
    removeOrphans: async () => undefined,
    findFailed,
    findExisting: async (queue, jobIds) => new Set((await jobStates(queue, jobIds)).keys()),
    isForbidden: () => false,
    publishByFunction: async () => {
      throw new TypeError('PostgreSQL has no users that may only add jobs');
    },
    loadPublishFunction: async () => undefined,
    restoreSettings: async () => undefined,
    async serverTimeMs(queue) {
      const { rows } = await poolOf(queue).query<{ ms: number }>(SERVER_TIME);
      return Number(rows[0]?.ms);
    },
    findForeignPublishers: async () => ({ foreignQueues: [], version: null }),
    findForeignVersion: async () => null,
    workerNames: async (queue) => (await listWorkers(queue, queue.name)).map(({ name }) => name),
    // disk_full: PostgreSQL rejects writes until there is space again.
    isFull: (error) => (error as { code?: unknown }).code === '53100',
    // SQLSTATEs of data exceptions, violated constraints and exceeded limits of a value.
    isJobFault: (error) => /^(22|23|54)/.test(String((error as { code?: unknown }).code)),
    usedShare: async () => 0,
    evictionPolicy: async (queue) => {
      await poolOf(queue).query('SELECT 1');
      return null;
    },
    peek: async () => [],
    discard: async () => undefined,
    lastDelayed: async () => [],
    createQueue: <Data>(name: string, telemetry?: Telemetry) =>
      new Postgres.Queue<Data>(name, {
        connection: { ...connection, options: INDEX_SCAN_SETTINGS },
        ...(telemetry && { telemetry }),
      }) as unknown as Queue<Data>,
    createWorker: <Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions) =>
      new Postgres.Worker<Data>(name, process, {
        ...options,
        connection: { ...connection, options: WORKER_SETTINGS },
      }) as unknown as Worker<Data>,
  };
}

/** A client whose errors do not end the process: the call that a broken connection interrupts rejects with the error. */
function listenedClient(driver: typeof pg): typeof pg.Client {
  return class ListenedClient extends driver.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      this.on('error', () => undefined);
      this.setTypeParser(driver.types.builtins.JSONB, parseJsonb);
    }
  };
}

const WITHOUT_JIT = '-c jit=off';
/**
 * BullMQ's functions cache the plans of their statements for each connection. An idle queue is empty, and a scan of an
 * empty table costs nothing, so the plans read the whole table until the next ANALYZE: 5 ms a job with 1,000 jobs, 320
 * ms with 100,000 (ADR 27). Every statement has an index.
 */
const INDEX_SCAN_SETTINGS = `${WITHOUT_JIT} -c enable_seqscan=off`;
/**
 * A crash of the server may lose a worker's latest commits: their jobs are then repeated, and the record shows that
 * they are done. A producer's commits must not be lost.
 */
const WORKER_SETTINGS = `${INDEX_SCAN_SETTINGS} -c synchronous_commit=off`;

const HAS_FAILED = `SELECT EXISTS (
    SELECT FROM ${POSTGRES_SCHEMA}.job WHERE queue = $1 AND state = 'failed') AS "hasFailed"`;

async function hasFailed<Data>(queue: Queue<Data>): Promise<boolean> {
  const query = { name: 'has-failed', text: HAS_FAILED, values: [queue.name] };
  const { rows } = await poolOf(queue).query<{ hasFailed: boolean }>(query);
  return rows[0]?.hasFailed ?? false;
}

// The state of a job is a column of its row, so no job can be orphaned.
const JOB_STATES = `
  SELECT id, CASE WHEN state IN ('waiting', 'active', 'delayed') THEN 'queued' ELSE 'ended' END AS state
  FROM ${POSTGRES_SCHEMA}.job
  WHERE queue = $1 AND id = ANY ($2::text[])`;

async function jobStates<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Map<string, JobState>> {
  const values = [queue.name, jobIds];
  const { rows } = await poolOf(queue).query<{ id: string; state: JobState }>(JOB_STATES, values);
  return new Map(rows.map(({ id, state }) => [id, state]));
}

const FIND_FAILED = `SELECT id FROM ${POSTGRES_SCHEMA}.job
  WHERE queue = $1 AND id = ANY ($2::text[]) AND state = 'failed'`;

async function findFailed<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await poolOf(queue).query<{ id: string }>(FIND_FAILED, [queue.name, jobIds]);
  return new Set(rows.map(({ id }) => id));
}

const SERVER_TIME = `SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;

/** Throws if the queue is not on PostgreSQL. */
function poolOf<Data>(queue: Queue<Data>): pg.Pool {
  const backend: IQueueBackend = queue.getBackend();
  if (!(backend instanceof PostgresQueueBackend)) throw new TypeError('the queue is not on PostgreSQL');
  return backend.connection.pool as pg.Pool;
}
