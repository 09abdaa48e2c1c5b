import { type Clock, LOCAL_CLOCK } from '@runhook/runtime/server-clock';
import { DeadlineError, withinDeadline } from '@runhook/runtime/timers';
import type { Processor, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { withErrorBackoff } from '../patches/bullmq/error-backoff.ts';
import { withServerTimes } from '../patches/bullmq/server-times.ts';
import { reportUntestedVersion } from '../patches/bullmq/version.ts';
import { ShardMaps } from '../shard-maps.ts';
import {
  type BackendKind,
  type Connector,
  JobsRejectedError,
  QueueFullError,
  QueueUnavailableError,
  SILENT_MS,
  type TunedWorkerOptions,
} from './backend.ts';
import { postgres } from './postgres.ts';
import { openRedisConnection } from './redis/connection.ts';
import { redis } from './redis/index.ts';
import { createPacedWorker, SharedConcurrency } from './shared-concurrency.ts';

/** All kinds of servers that a queue may be on. */
const KINDS = [redis, postgres] as const satisfies readonly BackendKind[];

export type QueueBackendName = (typeof KINDS)[number]['name'];

export interface QueueBackendOptions {
  /** Timeout of a producer's call when the back end does not respond; 5 s when omitted. */
  callMs?: number | undefined;
  /** Time without a reply after which a connection counts as dead and is replaced; 15 s when omitted. */
  silentMs?: number;
  /** Clock for all times on the queue's server, shared by the processes of a deployment; this host's when omitted. */
  clock?: Clock;
}

const CALL_MS = 5_000;
/** Connection timeout as a share of the timeout of a call: shorter, because the connection's error is more specific. */
const CONNECT_SHARE = 0.6;

/** BullMQ on one of its back ends, chosen by `QUEUE_URL`. */
export interface QueueBackend extends Omit<Connector, 'createWorker'> {
  name: QueueBackendName;
  /** Clock for the times of jobs. */
  clock: Clock;
  /** The map that assigns accounts to shards of the queue, as cached by this process. */
  shardMaps: ShardMaps;
  /** @param sharedConcurrency limit shared by a group of workers; a worker without one is limited by its `concurrency` */
  createWorker<Data>(
    name: string,
    process: Processor<Data>,
    options: TunedWorkerOptions,
    shard?: number,
    sharedConcurrency?: SharedConcurrency,
  ): Worker<Data>;
  /** Limits the duration of a producer's call: a driver that waits for its server must not block a request. */
  withinCallTimeout<T>(call: () => Promise<T>): Promise<T>;
}

/** Returns the kind of server of a queue URL. Throws an error that describes its problem without any part of it. */
export function queueBackendName(queueUrl: string): QueueBackendName {
  return kindOf(queueUrl).name;
}

export function createQueueBackend(
  queueUrl: string,
  { callMs = CALL_MS, silentMs = SILENT_MS, clock = LOCAL_CLOCK }: QueueBackendOptions = {},
): QueueBackend {
  const { name, connect } = kindOf(queueUrl);
  const connector = connect(queueUrl, callMs * CONNECT_SHARE, silentMs);
  return {
    name,
    ...connector,
    clock,
    shardMaps: new ShardMaps(connector.shards),
    createQueue: <Data>(...parameters: Parameters<Connector['createQueue']>) => {
      const queue = connector.createQueue<Data>(...parameters);
      reportUntestedVersion(queue);
      return withServerTimes(queue, clock);
    },
    createWorker: (
      name,
      process,
      options,
      shard = 0,
      sharedConcurrency = new SharedConcurrency(options.concurrency ?? 1),
    ) =>
      withErrorBackoff(
        createPacedWorker(sharedConcurrency, process, (paced, concurrency) =>
          withServerTimes(connector.createWorker(name, paced, { ...options, concurrency }, shard), clock),
        ),
      ),
    withinCallTimeout: (call) => withinCallTimeout(connector, callMs, call),
  };
}

/**
 * Updates BullMQ's schema on the queue's server for this release and returns its version; null where there is none, as
 * on Redis. Concurrent calls are serialized.
 * @param roles database roles that may use the queue, in addition to the one of the URL
 */
export async function migrateQueue(queueUrl: string, roles: readonly string[] = []): Promise<number | null> {
  return await kindOf(queueUrl).migrate(queueUrl, roles);
}

/** Calls {@link openRedisConnection}; returns null where the queue is not on Redis. */
export async function openRedis(
  queueUrl: string,
  onError: (error: Error) => void,
  commandTimeoutMs?: number,
): Promise<Redis | Cluster | null> {
  return kindOf(queueUrl) === redis ? await openRedisConnection(queueUrl, onError, commandTimeoutMs) : null;
}

function kindOf(queueUrl: string): (typeof KINDS)[number] {
  const scheme = /^([a-z+]+):\/\//.exec(queueUrl)?.[1] ?? '';
  const kind = KINDS.find(({ schemes }) => schemes.includes(scheme));
  if (kind === undefined) {
    // Created here, because the first list format of a process loads all locales of Node into memory.
    const forms = new Intl.ListFormat('en', { type: 'disjunction' }).format(
      KINDS.flatMap(({ schemes }) => schemes.map((scheme) => `${scheme}://`)),
    );
    throw new TypeError(`the queue URL must start with ${forms}`);
  }
  kind.checkUrl(queueUrl);
  return kind;
}

async function withinCallTimeout<T>(
  { isFull }: Connector,
  callMs: number,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await withinDeadline(callMs, call);
  } catch (error) {
    if (error instanceof QueueUnavailableError || error instanceof JobsRejectedError) throw error;
    if (isFull(error)) throw new QueueFullError('The queue is full.', { cause: error });
    throw error instanceof DeadlineError
      ? new QueueUnavailableError(`The queue did not respond within ${callMs} ms.`)
      : new QueueUnavailableError('The call to the queue failed.', { cause: error });
  }
}
