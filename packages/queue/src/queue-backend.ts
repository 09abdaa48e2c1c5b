import {
  createPostgresBackend,
  type Processor,
  Queue,
  Worker,
  type WorkerOptions,
  withBackend,
} from 'bullmq';
import pg from 'pg';

export type QueueBackendName = 'Redis' | 'PostgreSQL';

/** Redis keys share one hash tag, so that a cluster keeps a queue's keys on one node. */
const REDIS_PREFIX = '{runhook}';
const POSTGRES_SCHEMA = 'bullmq';
/** A queue call of a producer fails within about this time when the backend is gone, instead of waiting for it. */
const PRODUCER_CONNECT_TIMEOUT_MS = 3_000;
const RECONNECT_DELAY_MAX_MS = 2_000;

type TunedWorkerOptions = Omit<WorkerOptions, 'connection' | 'prefix'>;

/** BullMQ on one of its backends; made from `QUEUE_URL`, and the only place that knows which one it is. */
export interface QueueBackend {
  name: QueueBackendName;
  createQueue<Data>(name: string): Queue<Data>;
  createWorker<Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions): Worker<Data>;
}

/** Throws when the URL is neither `redis(s)://` nor `postgres(ql)://`. */
export function queueBackendName(queueUrl: string): QueueBackendName {
  if (/^rediss?:\/\//.test(queueUrl)) return 'Redis';
  if (/^postgres(ql)?:\/\//.test(queueUrl)) return 'PostgreSQL';
  throw new TypeError('the queue URL must start with redis://, rediss://, postgres:// or postgresql://');
}

/** @param connectionsMax connections of each queue and worker to PostgreSQL; Redis takes one or two */
export function createQueueBackend(queueUrl: string, connectionsMax = 4): QueueBackend {
  return queueBackendName(queueUrl) === 'Redis'
    ? redisBackend(queueUrl)
    : postgresBackend(queueUrl, connectionsMax);
}

function redisBackend(url: string): QueueBackend {
  const retryStrategy = (times: number) => Math.min(100 * 2 ** times, RECONNECT_DELAY_MAX_MS);
  return {
    name: 'Redis',
    createQueue: <Data>(name: string) =>
      new Queue<Data>(name, {
        connection: {
          url,
          retryStrategy,
          maxRetriesPerRequest: 1,
          connectTimeout: PRODUCER_CONNECT_TIMEOUT_MS,
        },
        prefix: REDIS_PREFIX,
        skipWaitingForReady: true,
      }) as Queue<Data>,
    createWorker: <Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions) =>
      new Worker<Data>(name, process, {
        ...options,
        connection: { url, retryStrategy, maxRetriesPerRequest: null },
        prefix: REDIS_PREFIX,
      }),
  };
}

/**
 * A connection that breaks while BullMQ has it checked out emits an error that nobody listens for, which would end the
 * process. The call that runs on it fails all the same, and is told there.
 */
class ListenedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
  }
}

function postgresBackend(connectionString: string, max: number): QueueBackend {
  const Postgres = withBackend(createPostgresBackend);
  const connection = {
    connectionString,
    schema: POSTGRES_SCHEMA,
    migrate: true,
    max,
    Client: ListenedClient,
    connectionTimeoutMillis: PRODUCER_CONNECT_TIMEOUT_MS,
  };
  return {
    name: 'PostgreSQL',
    createQueue: <Data>(name: string) =>
      new Postgres.Queue<Data>(name, { connection }) as unknown as Queue<Data>,
    createWorker: <Data>(name: string, process: Processor<Data>, options: TunedWorkerOptions) =>
      new Postgres.Worker<Data>(name, process, { ...options, connection }) as unknown as Worker<Data>,
  };
}
