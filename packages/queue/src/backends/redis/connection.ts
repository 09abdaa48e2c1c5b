import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { withJitter } from '@runhook/runtime/timers';
import type { Processor, Queue, QueueOptions, WorkerOptions } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { ReadableQueue, ReadableWorker } from '../../patches/bullmq/readable-job.ts';
import { SILENT_MS } from '../backend.ts';
import { parseRedisUrl, type RedisTarget } from './url.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const COMMAND_TIMEOUT_MS = 500;

/**
 * Opens a connection to the queue's Redis for small tasks outside of BullMQ. Commands fail at once without a
 * connection, and after `commandTimeoutMs` without a reply, so callers need a fallback. Resolves when connected, at the
 * first error, or after twice that time; reconnects automatically until `disconnect()`.
 * @param onError called with each error of a connection or a connection attempt
 */
export async function openRedisConnection(
  queueUrl: string,
  onError: (error: Error) => void,
  commandTimeoutMs = COMMAND_TIMEOUT_MS,
): Promise<Redis | Cluster> {
  const redis = openClient(parseRedisUrl(queueUrl), {
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: commandTimeoutMs,
    socketTimeout: SILENT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', onError);
  const firstConnection = AbortSignal.timeout(2 * commandTimeoutMs);
  // The wait also rejects with the first error, which was reported already.
  await once(redis, 'ready', { signal: firstConnection }).catch(() => undefined);
  return redis;
}

const RECONNECT_DELAY_MAX_MS = 2_000;
/** Delay before a command is retried while a cluster moves a slot or promotes a replica. */
const FAILOVER_DELAY_MS = 100;

interface ClientOptions {
  connectTimeout?: number;
  commandTimeout?: number;
  /** Replaces the connection if a command that was sent has no reply for this time. */
  socketTimeout?: number;
  /** Null retries without limit. */
  maxRetriesPerRequest: number | null;
  /** Whether commands are queued until there is a connection; true when omitted. */
  enableOfflineQueue?: boolean;
}

/** Jittered, because all clients of a server lose their connections simultaneously. */
export function reconnectDelayMs(times: number): number {
  return withJitter(Math.min(100 * 2 ** times, RECONNECT_DELAY_MAX_MS));
}

/** Returns the options of a client for one server, with a fixed address or found by sentinels. Not for a cluster. */
function redisOptions(target: RedisTarget, options: ClientOptions) {
  const [node] = target.nodes;
  const server = {
    ...sharedOptions(target),
    db: target.database,
    retryStrategy: reconnectDelayMs,
    ...options,
  };
  if (target.kind === 'single') return { ...server, ...node };
  return {
    ...server,
    sentinels: target.nodes,
    name: target.masterName ?? '',
    sentinelRetryStrategy: reconnectDelayMs,
    sentinelCommandTimeout: options.connectTimeout ?? CONNECT_TIMEOUT_MS,
    ...(target.sentinelUsername !== undefined && { sentinelUsername: target.sentinelUsername }),
    ...(target.sentinelPassword !== undefined && { sentinelPassword: target.sentinelPassword }),
    ...(target.isTls && { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(target) }),
  };
}

function openCluster(target: RedisTarget, options: ClientOptions): Cluster {
  const { enableOfflineQueue = true, ...perNode } = options;
  return new Cluster(target.nodes, {
    enableOfflineQueue,
    clusterRetryStrategy: reconnectDelayMs,
    retryDelayOnFailover: FAILOVER_DELAY_MS,
    retryDelayOnClusterDown: FAILOVER_DELAY_MS,
    redisOptions: { ...sharedOptions(target), ...perNode },
    // The certificates of the nodes contain their names, which a lookup would replace by addresses.
    ...(target.isTls && {
      dnsLookup: (name: string, done: (error: null, address: string) => void) => done(null, name),
    }),
  });
}

/** Opens a client, which begins to connect at once. The caller must disconnect it. */
export function openClient(target: RedisTarget, options: ClientOptions): Redis | Cluster {
  return target.kind === 'cluster' ? openCluster(target, options) : new Redis(redisOptions(target, options));
}

function sharedOptions(target: RedisTarget) {
  return {
    ...(target.username !== undefined && { username: target.username }),
    ...(target.password !== undefined && { password: target.password }),
    ...(target.family !== undefined && { family: target.family }),
    ...(target.isTls && { tls: tlsOptions(target) }),
  };
}

function tlsOptions({ caFile, certFile, keyFile }: RedisTarget): {
  ca?: Buffer;
  cert?: Buffer;
  key?: Buffer;
} {
  return {
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
  };
}

/** A client shared by queues or workers, which is open while any of them uses it. */
export class SharedClient {
  readonly #open: () => Redis | Cluster;
  #client: Redis | Cluster | null = null;
  #users = 0;

  constructor(open: () => Redis | Cluster) {
    this.#open = open;
  }

  /** Null while it has no users. */
  get client(): Redis | Cluster | null {
    return this.#client;
  }

  /** Returns the client. The caller must call `release` exactly once. */
  acquire(): Redis | Cluster {
    // Users handle its errors; this listener handles those after the last user has left.
    this.#client ??= this.#open().on('error', () => undefined);
    this.#users += 1;
    return this.#client;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#client?.disconnect();
    this.#client = null;
  }
}

/* BullMQ does not close a client that is passed to it. These classes release theirs. */

export class SharedClientQueue<Data> extends ReadableQueue<Data> {
  readonly redis: Redis | Cluster;
  readonly #shared: SharedClient;
  #isReleased = false;

  constructor(name: string, shared: SharedClient, options: Omit<QueueOptions, 'connection'>) {
    const redis = shared.acquire();
    super(name, { ...options, connection: redis });
    this.redis = redis;
    this.#shared = shared;
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      if (!this.#isReleased) this.#shared.release();
      this.#isReleased = true;
    }
  }
}

export class SharedClientWorker<Data> extends ReadableWorker<Data> {
  readonly #shared: SharedClient;
  #isReleased = false;

  constructor(
    name: string,
    process: Processor<Data>,
    shared: SharedClient,
    options: Omit<WorkerOptions, 'connection'>,
  ) {
    super(name, process, { ...options, connection: shared.acquire() });
    this.#shared = shared;
  }

  override async close(force?: boolean): Promise<void> {
    try {
      await super.close(force);
    } finally {
      if (!this.#isReleased) this.#shared.release();
      this.#isReleased = true;
    }
  }
}

/** Returns the Redis client of a queue; throws if the queue is not on Redis. */
export function requireRedisClient<Data>(queue: Queue<Data>): Redis | Cluster {
  if (!(queue instanceof SharedClientQueue)) throw new TypeError('the queue is not on Redis');
  return queue.redis;
}
