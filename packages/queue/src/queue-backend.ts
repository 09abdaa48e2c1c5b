import { setTimeout as wait } from 'node:timers/promises';
import { DeadlineError, withinDeadline } from '@runhook/runtime/deadline';
import {
  type ConnectionOptions,
  createPostgresBackend,
  type Processor,
  Queue,
  runMigrations,
  type Telemetry,
  Worker,
  type WorkerOptions,
  withBackend,
} from 'bullmq';
import pg from 'pg';
import { ClusterQueue, ClusterWorker, openCluster, redisOptions } from './redis-connection.ts';
import { parseRedisUrl } from './redis-url.ts';

export type QueueBackendName = 'Redis' | 'PostgreSQL';

/** Redis keys share one hash tag, so that a cluster keeps a queue's keys on one node. */
const REDIS_PREFIX = '{runhook}';
/** Of what happens to jobs BullMQ keeps 10,000 entries for whoever listens. Nobody does. */
const EVENT_STREAM = { events: { maxLen: 100 } };
export const POSTGRES_SCHEMA = 'bullmq';
/** Of each queue and worker to PostgreSQL; Redis takes one or two. */
const CONNECTIONS_MAX = 4;

export interface QueueBackendOptions {
  /** How long a producer's call waits for a backend that may be gone, before it fails; 5 s when omitted. */
  callMs?: number | undefined;
}

const CALL_MS = 5_000;
/** Less than the call: its error says more. */
const CONNECT_SHARE = 0.6;

type TunedWorkerOptions = Omit<WorkerOptions, 'connection' | 'prefix'>;

/** BullMQ on one of its backends; made from `QUEUE_URL`, and the only place that knows which one it is. */
export interface QueueBackend {
  name: QueueBackendName;
  createQueue<Data>(name: string, telemetry?: Telemetry): Queue<Data>;
  createWorker<Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions): Worker<Data>;
  /** Bounds a producer's call: a driver that keeps waiting for its backend must not keep a request waiting. */
  withinCallTimeout<T>(call: () => Promise<T>): Promise<T>;
}

type BackendOfItsOwn = Omit<QueueBackend, 'withinCallTimeout'>;

/** Throws when the URL is neither of PostgreSQL nor of a form of Redis that `parseRedisUrl` reads. */
export function queueBackendName(queueUrl: string): QueueBackendName {
  if (/^postgres(ql)?:\/\//.test(queueUrl)) return 'PostgreSQL';
  if (!/^rediss?(\+(cluster|sentinel))?:\/\//.test(queueUrl)) {
    throw new TypeError(
      'the queue URL must start with redis://, rediss://, redis+cluster://, redis+sentinel:// or postgres://',
    );
  }
  parseRedisUrl(queueUrl);
  return 'Redis';
}

export function createQueueBackend(
  queueUrl: string,
  { callMs = CALL_MS }: QueueBackendOptions = {},
): QueueBackend {
  const connectMs = callMs * CONNECT_SHARE;
  const backend =
    queueBackendName(queueUrl) === 'Redis'
      ? redisBackend(queueUrl, connectMs)
      : postgresBackend(queueUrl, connectMs);
  return { ...backend, withinCallTimeout: (call) => withinCallTimeout(callMs, call) };
}

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Brings BullMQ's own schema in PostgreSQL to what this release needs, and answers its version; null on Redis, which
 * has no schema. Calls at the same time wait for each other (an advisory lock of the transaction).
 */
export async function migrateQueue(queueUrl: string): Promise<number | null> {
  if (queueBackendName(queueUrl) === 'Redis') return null;
  const client = new pg.Client({
    connectionString: queueUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
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

/** The queue did not take a call; nothing was added that the caller may rely on. `cause` holds the driver's error. */
export class QueueUnavailableError extends Error {
  readonly code = 'queue_unavailable';
}

async function withinCallTimeout<T>(callMs: number, call: () => Promise<T>): Promise<T> {
  try {
    return await withinDeadline(callMs, call);
  } catch (error) {
    throw error instanceof DeadlineError
      ? new QueueUnavailableError(`The queue did not answer within ${callMs} ms.`)
      : new QueueUnavailableError('The queue did not take the call.', { cause: error });
  }
}

function redisBackend(url: string, connectMs: number): BackendOfItsOwn {
  const target = parseRedisUrl(url);
  const producing = { maxRetriesPerRequest: 1, connectTimeout: connectMs };
  const working = { maxRetriesPerRequest: null };
  return {
    name: 'Redis',
    createQueue<Data>(name: string, telemetry?: Telemetry) {
      const options = {
        prefix: REDIS_PREFIX,
        skipWaitingForReady: true,
        streams: EVENT_STREAM,
        ...(telemetry && { telemetry }),
      };
      return target.kind === 'cluster'
        ? new ClusterQueue<Data>(name, openCluster(target, producing), options)
        : (new Queue(name, {
            ...options,
            connection: redisOptions(target, producing) as ConnectionOptions,
          }) as Queue<Data>);
    },
    createWorker<Data>(name: string, process: Processor<Data>, tuned: TunedWorkerOptions) {
      const options = { ...tuned, prefix: REDIS_PREFIX };
      return target.kind === 'cluster'
        ? new ClusterWorker<Data>(name, process, openCluster(target, working), options)
        : new Worker<Data>(name, process, {
            ...options,
            connection: redisOptions(target, working) as ConnectionOptions,
          });
    },
  };
}

function postgresBackend(connectionString: string, connectMs: number): BackendOfItsOwn {
  const Postgres = withBackend(createRetryingBackend);
  const connection = {
    connectionString,
    schema: POSTGRES_SCHEMA,
    migrate: true,
    max: CONNECTIONS_MAX,
    Client: ListenedClient,
    connectionTimeoutMillis: connectMs,
  };
  return {
    name: 'PostgreSQL',
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
 * process. The call that runs on it fails all the same, and is reported there.
 */
class ListenedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}

/**
 * BullMQ's functions plan their statements once for each connection, often while its tables are empty or were so when
 * they were last analysed: a scan of the whole table, which then holds thousands of dead rows. Every statement of theirs
 * has an index.
 */
const PLANNED_FOR_INDEXES = '-c enable_seqscan=off -c jit=off';
/**
 * What a worker says of its jobs may be forgotten by a crash of the server: they come back, and find in the record what
 * is done. What a producer added may not.
 */
const WORKER_SETTINGS = `${PLANNED_FOR_INDEXES} -c synchronous_commit=off`;

/** What is BullMQ's own and undocumented: the connection of a backend, and how it makes itself ready. */
interface BackendConnection {
  bootstrap(): Promise<void>;
  waitUntilReady(): Promise<void>;
}

const RETRY_MS = 500;

/**
 * As BullMQ's own, but a connection that could not be made ready tries again. BullMQ remembers the first try for ever,
 * and the loop of a worker asks for it without a pause: with a failed one it would never work again, and never let
 * anything else of its process run.
 */
const createRetryingBackend: typeof createPostgresBackend = (name, options, factoryOptions) => {
  const backend = createPostgresBackend(name, options, factoryOptions);
  const { connection } = backend as unknown as { connection: BackendConnection };
  let readiness: Promise<void> | null = null;
  connection.waitUntilReady = () => {
    readiness ??= connection.bootstrap().catch(async (error: unknown) => {
      await wait(RETRY_MS);
      readiness = null;
      throw error;
    });
    return readiness;
  };
  return backend;
};
