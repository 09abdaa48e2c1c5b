import { type Clock, LOCAL_CLOCK } from '@runhook/runtime/server-clock';
import { DeadlineError, withinDeadline } from '@runhook/runtime/timers';
import type { Processor, Worker } from 'bullmq';
import type { Cluster, Redis } from 'ioredis';
import { withErrorPause } from '../patches/bullmq/error-pause.ts';
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
import { createPaced, Gate } from './pace.ts';
import { postgres } from './postgres.ts';
import { openRedisBeside } from './redis/connection.ts';
import { redis } from './redis/index.ts';

/** The kinds of servers that a queue may be on: the only list of them. */
const KINDS = [redis, postgres] as const satisfies readonly BackendKind[];

export type QueueBackendName = (typeof KINDS)[number]['name'];

export interface QueueBackendOptions {
  /** How long a producer's call waits for a backend that may be gone, before it fails; 5 s when omitted. */
  callMs?: number | undefined;
  /** After this time without a reply a connection counts as dead and is replaced; 15 s when omitted. */
  silentMs?: number;
  /** The clock of all times on the queue's server, which the processes of a deployment share; this host's when omitted. */
  clock?: Clock;
}

const CALL_MS = 5_000;
/** Less than the call: its error says more. */
const CONNECT_SHARE = 0.6;

/** BullMQ on one of its backends; made from `QUEUE_URL`. */
export interface QueueBackend extends Omit<Connector, 'createWorker'> {
  name: QueueBackendName;
  /** The clock of the times of its jobs. */
  clock: Clock;
  /** As this process knows it. */
  shardMaps: ShardMaps;
  /** @param gate of a group of workers with one bound; a worker of its own has its `concurrency` */
  createWorker<Data>(
    name: string,
    process: Processor<Data>,
    options: TunedWorkerOptions,
    shard?: number,
    gate?: Gate,
  ): Worker<Data>;
  /** Bounds a producer's call: a driver that keeps waiting for its backend must not keep a request waiting. */
  withinCallTimeout<T>(call: () => Promise<T>): Promise<T>;
}

/** Throws a sentence that says what is wrong with the URL, and repeats nothing of it. */
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
    createWorker: (name, process, options, shard = 0, gate = new Gate(options.concurrency ?? 1)) =>
      withErrorPause(
        createPaced(gate, process, (paced, concurrency) =>
          withServerTimes(connector.createWorker(name, paced, { ...options, concurrency }, shard), clock),
        ),
      ),
    withinCallTimeout: (call) => withinCallTimeout(connector, callMs, call),
  };
}

/**
 * Brings what the queue's server needs of BullMQ's own to this release, and answers its version; null where it needs
 * nothing, as on Redis. Calls at the same time wait for each other.
 */
export async function migrateQueue(queueUrl: string): Promise<number | null> {
  return await kindOf(queueUrl).migrate(queueUrl);
}

/** As {@link openRedisBeside}, or null where the queue is not on Redis. */
export async function openRedis(
  queueUrl: string,
  onError: (error: Error) => void,
  commandTimeoutMs?: number,
): Promise<Redis | Cluster | null> {
  return kindOf(queueUrl) === redis ? await openRedisBeside(queueUrl, onError, commandTimeoutMs) : null;
}

function kindOf(queueUrl: string): (typeof KINDS)[number] {
  const scheme = /^([a-z+]+):\/\//.exec(queueUrl)?.[1] ?? '';
  const kind = KINDS.find(({ schemes }) => schemes.includes(scheme));
  if (kind === undefined) {
    // Made here: the first list of a process reads all locales that Node has, and keeps them.
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
      ? new QueueUnavailableError(`The queue did not answer within ${callMs} ms.`)
      : new QueueUnavailableError('The queue did not take the call.', { cause: error });
  }
}
