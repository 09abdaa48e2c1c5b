import { createRequire } from 'node:module';
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

/** Of each queue and worker; Redis takes one or two. */
const CONNECTIONS_MAX = 4;
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a statement may take, as a share of `silentMs`. */
const QUERY_SHARE = 2 / 3;
/** BullMQ's bulk function makes two temporary tables: 5 ms of the server's CPU a call, a single job a tenth of that (ADR 27). */
const ADDED_SINGLY_MAX = 8;

export const postgres: BackendKind<'PostgreSQL'> = {
  name: 'PostgreSQL',
  schemes: ['postgres', 'postgresql'],
  // What is wrong with it is told by whoever connects.
  checkUrl: () => undefined,
  connect,
  migrate,
};

/** Loaded by the first queue that is on PostgreSQL, as BullMQ does: whoever publishes over Redis needs no driver. */
function loadDriver(): typeof pg {
  try {
    return createRequire(import.meta.url)('pg');
  } catch (cause) {
    throw new Error('a queue in PostgreSQL needs the package pg', { cause });
  }
}

/** Calls at the same time wait for each other (an advisory lock of the transaction). */
async function migrate(connectionString: string): Promise<number> {
  const client = new (loadDriver().Client)({
    connectionString,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: WITHOUT_JIT,
  });
  // The call that a broken connection interrupts rejects by itself.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await runMigrations(client, POSTGRES_SCHEMA);
  } finally {
    await client.end();
  }
}

function connect(connectionString: string, connectMs: number, silentMs: number): Connector {
  const createBackend: typeof createPostgresBackend = (...parameters) =>
    createPatchedBackend(silentMs, ...parameters);
  const Postgres = withBackend(createBackend);
  const connection = {
    connectionString,
    schema: POSTGRES_SCHEMA,
    migrate: true,
    max: CONNECTIONS_MAX,
    Client: listenedClient(loadDriver()),
    connectionTimeoutMillis: connectMs,
    query_timeout: silentMs * QUERY_SHARE,
  };
  return {
    shards: null,
    having: async (queues) => new Set(queues),
    addedSinglyMax: ADDED_SINGLY_MAX,
    isSpread: false,
    hasFailed,
    jobStates,
    removeOrphans: async () => undefined,
    failedAmong,
    present: async (queue, jobIds) => new Set((await jobStates(queue, jobIds)).keys()),
    isForbidden: () => false,
    keepSettings: async () => undefined,
    async serverTimeMs(queue) {
      const { rows } = await poolOf(queue).query<{ ms: number }>(SERVER_TIME);
      return Number(rows[0]?.ms);
    },
    strangers: async () => ({ elsewhere: [], version: null }),
    strangeVersion: async () => null,
    // disk_full: PostgreSQL then refuses whatever writes, and goes on by itself once there is room.
    isFull: (error) => (error as { code?: unknown }).code === '53100',
    // Data exceptions, violated constraints, exceeded limits of a value.
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
        connection: { ...connection, options: PLANNED_FOR_INDEXES },
        ...(telemetry && { telemetry }),
      }) as unknown as Queue<Data>,
    createWorker: <Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions) =>
      new Postgres.Worker<Data>(name, process, {
        ...options,
        connection: { ...connection, options: WORKER_SETTINGS },
      }) as unknown as Worker<Data>,
  };
}

/** A client whose errors do not end the process: the call that a broken connection interrupts rejects, and is reported there. */
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
 * BullMQ's functions keep the plans of their statements for a connection. An idle queue is empty, and while an empty table is
 * analysed its scan costs nothing, so the plans read the whole table until the next ANALYZE: 5 ms a job with 1,000 jobs, 320 ms with
 * 100,000 (ADR 27). Every statement has an index.
 */
const PLANNED_FOR_INDEXES = `${WITHOUT_JIT} -c enable_seqscan=off`;
/**
 * What a worker says of its jobs may be forgotten by a crash of the server: they come back, and find in the record what
 * is done. What a producer added may not.
 */
const WORKER_SETTINGS = `${PLANNED_FOR_INDEXES} -c synchronous_commit=off`;

const HAS_FAILED = `SELECT EXISTS (
    SELECT FROM ${POSTGRES_SCHEMA}.job WHERE queue = $1 AND state = 'failed') AS "hasFailed"`;

async function hasFailed<Data>(queue: Queue<Data>): Promise<boolean> {
  const query = { name: 'has-failed', text: HAS_FAILED, values: [queue.name] };
  const { rows } = await poolOf(queue).query<{ hasFailed: boolean }>(query);
  return rows[0]?.hasFailed ?? false;
}

// A job is a row, and its state a column of it: none can be orphaned.
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

const FAILED_AMONG = `SELECT id FROM ${POSTGRES_SCHEMA}.job
  WHERE queue = $1 AND id = ANY ($2::text[]) AND state = 'failed'`;

async function failedAmong<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await poolOf(queue).query<{ id: string }>(FAILED_AMONG, [queue.name, jobIds]);
  return new Set(rows.map(({ id }) => id));
}

const SERVER_TIME = `SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms`;

/** Throws if the queue is not on PostgreSQL. */
function poolOf<Data>(queue: Queue<Data>): pg.Pool {
  const backend: IQueueBackend = queue.getBackend();
  if (!(backend instanceof PostgresQueueBackend)) throw new TypeError('the queue is not on PostgreSQL');
  return backend.connection.pool as pg.Pool;
}
