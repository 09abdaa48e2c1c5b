import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { jittered } from '@runhook/runtime/timers';
import type { Processor, Queue, QueueOptions, WorkerOptions } from 'bullmq';
import { Cluster, Redis } from 'ioredis';
import { ReadableQueue, ReadableWorker } from '../../patches/bullmq/readable-job.ts';
import { SILENT_MS } from '../backend.ts';
import { parseRedisUrl, type RedisTarget } from './url.ts';

const CONNECT_TIMEOUT_MS = 3_000;
const COMMAND_TIMEOUT_MS = 500;

/**
 * A connection to the queue's Redis for small things beside the queues. Its commands fail, at once while there is
 * no connection and after `commandTimeoutMs` without an answer: callers must have another way. Resolves when it is
 * connected, or after twice that time without; it goes on trying by itself until `disconnect()`.
 * @param onError told of every connection that breaks or cannot be made
 */
export async function openRedisBeside(
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
  // Rejects with the first error as well; that one was reported already.
  await once(redis, 'ready', { signal: firstConnection }).catch(() => undefined);
  return redis;
}

const RECONNECT_DELAY_MAX_MS = 2_000;
/** A cluster that moves a slot, or promotes a replica, is asked again after this. */
const MOVED_DELAY_MS = 100;

/** How long a client waits, and for what. */
interface ClientOptions {
  connectTimeout?: number;
  commandTimeout?: number;
  /** Without a reply for so long to a command that was sent, the connection is replaced. */
  socketTimeout?: number;
  /** Null waits for ever. */
  maxRetriesPerRequest: number | null;
  /** Whether commands wait for a connection; true when omitted. */
  enableOfflineQueue?: boolean;
}

/** Jittered, because all clients of a server lose it at the same time. */
export function reconnectDelayMs(times: number): number {
  return jittered(Math.min(100 * 2 ** times, RECONNECT_DELAY_MAX_MS));
}

/** Of a client that talks to one server, found by its own address or by sentinels. Not for a cluster. */
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
    retryDelayOnFailover: MOVED_DELAY_MS,
    retryDelayOnClusterDown: MOVED_DELAY_MS,
    redisOptions: { ...sharedOptions(target), ...perNode },
    // The nodes are named to each other by what their certificates say, which a lookup would replace by addresses.
    ...(target.isTls && {
      dnsLookup: (name: string, done: (error: null, address: string) => void) => done(null, name),
    }),
  });
}

/** A client of our own: whoever opens it disconnects it. It begins to connect at once. */
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

/** One client for all that is opened on it, as long as anything is. */
export class SharedClient {
  readonly #open: () => Redis | Cluster;
  #client: Redis | Cluster | null = null;
  #users = 0;

  constructor(open: () => Redis | Cluster) {
    this.#open = open;
  }

  /** Null while nothing is opened on it. */
  get client(): Redis | Cluster | null {
    return this.#client;
  }

  /** Whoever takes it gives it back with `leave`, once. */
  take(): Redis | Cluster {
    // Those who use it hear of its errors; between the last one's leaving and its end nobody does.
    this.#client ??= this.#open().on('error', () => undefined);
    this.#users += 1;
    return this.#client;
  }

  leave(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#client?.disconnect();
    this.#client = null;
  }
}

/*
 * BullMQ leaves a client that it is given open. These release theirs.
 */

export class SharingQueue<Data> extends ReadableQueue<Data> {
  readonly redis: Redis | Cluster;
  readonly #shared: SharedClient;
  #isLeft = false;

  constructor(name: string, shared: SharedClient, options: Omit<QueueOptions, 'connection'>) {
    const redis = shared.take();
    super(name, { ...options, connection: redis });
    this.redis = redis;
    this.#shared = shared;
  }

  override async close(): Promise<void> {
    try {
      await super.close();
    } finally {
      if (!this.#isLeft) this.#shared.leave();
      this.#isLeft = true;
    }
  }
}

export class SharingWorker<Data> extends ReadableWorker<Data> {
  readonly #shared: SharedClient;
  #isLeft = false;

  constructor(
    name: string,
    process: Processor<Data>,
    shared: SharedClient,
    options: Omit<WorkerOptions, 'connection'>,
  ) {
    super(name, process, { ...options, connection: shared.take() });
    this.#shared = shared;
  }

  override async close(force?: boolean): Promise<void> {
    try {
      await super.close(force);
    } finally {
      if (!this.#isLeft) this.#shared.leave();
      this.#isLeft = true;
    }
  }
}

/** Returns the client of a queue that is on Redis; throws for another one. */
export function clientOf<Data>(queue: Queue<Data>): Redis | Cluster {
  if (!(queue instanceof SharingQueue)) throw new TypeError('the queue is not on Redis');
  return queue.redis;
}
