import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { jittered } from '@runhook/runtime/timers';
import {
  createPostgresBackend,
  type Processor,
  type Queue,
  runMigrations,
  type Telemetry,
  type Worker,
  withBackend,
} from 'bullmq';
import type pg from 'pg';
import type { BackendKind, Connector, JobState, TunedWorkerOptions } from './backend.ts';
import { parseJsonb } from './jsonb.ts';

export const POSTGRES_SCHEMA = 'bullmq';
/** Of each queue and worker; Redis takes one or two. */
const CONNECTIONS_MAX = 4;
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a statement may take, and how long the check of the connection that waits for work, as shares of `silentMs`. */
const QUERY_SHARE = 2 / 3;
const HEARTBEAT_SHARE = 1 / 3;
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
  const createBackend: typeof createPostgresBackend = (...given) => createRetryingBackend(silentMs, ...given);
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

/**
 * A connection that breaks while BullMQ has it checked out emits an error that nobody listens for, which would end the
 * process. The call that runs on it fails all the same, and is reported there. One that gave no answer in time is given
 * up: it would be used again, and everything behind what it still waits for with it.
 */
function listenedClient(driver: typeof pg): typeof pg.Client {
  return class ListenedClient extends driver.Client {
    constructor(config?: string | pg.ClientConfig) {
      super(config);
      this.on('error', () => undefined);
      this.setTypeParser(driver.types.builtins.JSONB, parseJsonb);
      const query = this.query.bind(this) as (...values: unknown[]) => unknown;
      const giveUpAfter = (error: unknown) => {
        if (error instanceof Error && error.message === 'Query read timeout') streamOf(this).destroy(error);
      };
      this.query = ((...values: unknown[]) => {
        const callback = values.at(-1);
        if (typeof callback === 'function') {
          values[values.length - 1] = (error: unknown, result: unknown) => {
            giveUpAfter(error);
            callback(error, result);
          };
        }
        const answer = query(...values);
        if (answer instanceof Promise) answer.catch(giveUpAfter);
        return answer;
      }) as typeof this.query;
    }
  };
}

/** The driver's types leave it out. */
const streamOf = (client: pg.Client) =>
  (client as unknown as { connection: { stream: Duplex } }).connection.stream;

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

const poolOf = <Data>(queue: Queue<Data>) =>
  (queue.getBackend() as unknown as { connection: BackendConnection }).connection.pool;

/** What is BullMQ's own and undocumented: how a backend hears of work, and its connection with how it makes itself ready. */
interface BackendInside {
  connection: BackendConnection;
  ensureListening(): Promise<pg.Client>;
}

interface BackendConnection {
  pool: pg.Pool;
  getListenClient(): Promise<pg.Client>;
  bootstrap(): Promise<void>;
  waitUntilReady(): Promise<void>;
}

const oldestFirst = (where: string, order: string) => `
  SELECT id FROM ${POSTGRES_SCHEMA}.job WHERE queue = $1 AND ${where} ORDER BY ${order} OFFSET $2 LIMIT $3`;
const OLDEST_WAITING = oldestFirst(`state = 'waiting' AND priority = 0`, 'priority, seq');
/**
 * BullMQ's function ignores the ascending order for these types: the first page of the oldest jobs has the newest ones. So an
 * event in the oldest job seemed to be in no job, and the reconciler put it on the queue again while a dispatcher had it.
 */
const OLDEST_FIRST: Readonly<Record<string, string>> = {
  wait: OLDEST_WAITING,
  waiting: OLDEST_WAITING,
  active: oldestFirst(`state = 'active'`, 'seq'),
};

const RETRY_MS = 500;

/** Jittered, because all processes lose PostgreSQL at the same time. */
export function readinessRetryMs(): number {
  return jittered(RETRY_MS);
}

/**
 * As BullMQ's own, but a connection that could not be made ready tries again. BullMQ remembers the first try for ever,
 * and the loop of a worker asks for it without a pause: with a failed one it would never work again, and never let
 * anything else of its process run. And the connection that a worker hears of work on is asked, before each wait, whether
 * it lives: one that the network has dropped says nothing, and a keepalive does not notice a proxy that keeps it open.
 */
function createRetryingBackend(
  silentMs: number,
  ...[name, options, factoryOptions]: Parameters<typeof createPostgresBackend>
): ReturnType<typeof createPostgresBackend> {
  const backend = createPostgresBackend(name, options, factoryOptions);
  const inside = backend as unknown as BackendInside;
  const { connection } = inside;
  // BullMQ would wait for up to an hour, and a dead connection reports no work.
  Object.defineProperty(backend, 'maximumBlockTimeout', { value: (silentMs * QUERY_SHARE) / 1_000 });
  const ensureListening = inside.ensureListening.bind(backend);
  inside.ensureListening = async () => {
    // Not a `ListenedClient`: BullMQ makes this one by itself, and makes another once it hears of its end.
    const client = await connection.getListenClient();
    try {
      await client.query({ text: 'SELECT', query_timeout: silentMs * HEARTBEAT_SHARE } as pg.QueryConfig);
      return await ensureListening();
    } catch (error) {
      streamOf(client).destroy(error as Error);
      throw error;
    }
  };
  const getRanges = backend.getRanges.bind(backend);
  backend.getRanges = async (types, start = 0, end = -1, asc = false) => {
    if (!asc || end < 0) return await getRanges(types, start, end, asc);
    const ranges = types.map(async (type) => {
      const text = OLDEST_FIRST[type];
      if (text === undefined) return (await getRanges([type], start, end, asc)).flat();
      await connection.waitUntilReady();
      const { rows } = await connection.pool.query<{ id: string }>(text, [name, start, end - start + 1]);
      // The caller reverses the result, because it expects a range of a Redis list, newest first.
      return rows.map(({ id }) => id).reverse();
    });
    // Typed as tuples of one id by BullMQ, for ranges of any length.
    return (await Promise.all(ranges)) as [string][];
  };
  let readiness: Promise<void> | null = null;
  connection.waitUntilReady = () => {
    readiness ??= connection.bootstrap().catch(async (error: unknown) => {
      await wait(readinessRetryMs());
      readiness = null;
      throw error;
    });
    return readiness;
  };
  return backend;
}
