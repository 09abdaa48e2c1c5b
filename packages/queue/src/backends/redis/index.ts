import { shardPrefix } from '@runhook/contract';
import type { Processor, Queue, Telemetry } from 'bullmq';
import { withWaitDeadlines } from '../../patches/bullmq/wait-deadlines.ts';
import type { BackendKind, Connector, TunedWorkerOptions } from '../backend.ts';
import {
  openClient,
  requireRedisClient,
  SharedClient,
  SharedClientQueue,
  SharedClientWorker,
} from './connection.ts';
import { REDIS_FOREIGN_PUBLISHERS } from './foreign-publishers.ts';
import { FULL_REDIS } from './full.ts';
import { REDIS_JOB_STATES } from './job-states.ts';
import { REDIS_PUBLISH_FUNCTION } from './publish-function.ts';
import { anyExists, REDIS_SHARDS } from './shards.ts';
import { parseRedisUrl } from './url.ts';
import { workerNames } from './worker-names.ts';

/** Options of the queues: BullMQ retains 10,000 job events by default for subscribers, of which there are none. */
const EVENT_STREAM = { events: { maxLen: 100 } };

/**
 * Number of jobs up to which they are added individually: BullMQ's bulk call is a transaction, and adding one job
 * individually takes two thirds of its time, on client and server.
 */
const SINGLE_ADD_MAX = 1;

export const redis: BackendKind<'Redis'> = {
  name: 'Redis',
  schemes: ['redis', 'rediss', 'redis+cluster', 'rediss+cluster', 'redis+sentinel', 'rediss+sentinel'],
  checkUrl: parseRedisUrl,
  connect,
  migrate: async () => null,
};

/**
 * Margin between a blocking wait and the time after which its connection counts as dead: BullMQ allows the wait one
 * second more than its timeout.
 */
const SILENT_MARGIN_MS = 2_000;
/** Timeout of a worker's wait for a job; BullMQ's default. */
const DRAIN_DELAY_SECONDS = 5;

function connect(url: string, connectMs: number, silentMs: number): Connector {
  const target = parseRedisUrl(url);
  // The clients are shared by all queues, shards and workers; BullMQ opens one more for each worker's blocking waits.
  const socketTimeout = silentMs;
  const waitMaxSeconds = (silentMs - SILENT_MARGIN_MS) / 1_000;
  const producerClient = new SharedClient(() =>
    openClient(target, { maxRetriesPerRequest: 1, connectTimeout: connectMs, socketTimeout }),
  );
  const workerClient = new SharedClient(() =>
    openClient(target, { maxRetriesPerRequest: null, socketTimeout }),
  );
  return {
    shards: REDIS_SHARDS,
    async queuesWithJobs(queues, states) {
      const keysOf = (queue: Queue) => states.map((state) => queue.toKey(state));
      const hasKeys = await anyExists(
        producerClient.client,
        queues.map((queue) => keysOf(queue as Queue)),
      );
      return new Set(queues.filter((_, index) => hasKeys[index]));
    },
    singleAddMax: SINGLE_ADD_MAX,
    isSpread: target.kind === 'cluster',
    async hasFailed(queue) {
      return (await requireRedisClient(queue).zcard(queue.toKey('failed'))) > 0;
    },
    async serverTimeMs(queue) {
      const [seconds, micros] = await requireRedisClient(queue).time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    },
    async restoreSettings(queue) {
      const { maxLen } = EVENT_STREAM.events;
      await requireRedisClient(queue).hsetnx(queue.toKey('meta'), 'opts.maxLenEvents', maxLen);
    },
    workerNames: (queue) => workerNames(queue, target.database),
    ...FULL_REDIS,
    ...REDIS_JOB_STATES,
    ...REDIS_FOREIGN_PUBLISHERS,
    ...REDIS_PUBLISH_FUNCTION,
    createQueue: <Data>(name: string, telemetry?: Telemetry, shard = 0) =>
      new SharedClientQueue<Data>(name, producerClient, {
        prefix: shardPrefix(shard),
        skipWaitingForReady: true,
        streams: EVENT_STREAM,
        ...(telemetry && { telemetry }),
      }),
    createWorker: <Data>(name: string, process: Processor<Data>, tuned: TunedWorkerOptions, shard = 0) =>
      withWaitDeadlines(
        new SharedClientWorker<Data>(name, process, workerClient, {
          ...tuned,
          drainDelay: Math.min(tuned.drainDelay ?? DRAIN_DELAY_SECONDS, waitMaxSeconds),
          prefix: shardPrefix(shard),
        }),
      ),
  };
}
