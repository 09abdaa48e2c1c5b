import { type ConnectionOptions, type Processor, Queue, type Telemetry, Worker } from 'bullmq';
import type { BackendKind, Connector, JobState, TunedWorkerOptions } from '../backend.ts';
import { ClusterQueue, ClusterWorker, openCluster, redisOptions } from './connection.ts';
import { clientOf, FULL_REDIS } from './full.ts';
import { REDIS_STRANGERS } from './strangers.ts';
import { parseRedisUrl } from './url.ts';

/** Redis keys share one hash tag, so that a cluster keeps a queue's keys on one node. */
const PREFIX = '{runhook}';
/** Of what happens to jobs BullMQ keeps 10,000 entries for whoever listens. Nobody does. */
const EVENT_STREAM = { events: { maxLen: 100 } };

export const redis: BackendKind<'Redis'> = {
  name: 'Redis',
  schemes: ['redis', 'rediss', 'redis+cluster', 'rediss+cluster', 'redis+sentinel', 'rediss+sentinel'],
  checkUrl: parseRedisUrl,
  connect,
  migrate: async () => null,
};

function connect(url: string, connectMs: number): Connector {
  const target = parseRedisUrl(url);
  const producing = { maxRetriesPerRequest: 1, connectTimeout: connectMs };
  const working = { maxRetriesPerRequest: null };
  return {
    addedSinglyMax: 0,
    async hasFailed(queue) {
      return (await (await clientOf(queue)).zcard(queue.toKey('failed'))) > 0;
    },
    jobStates,
    async keepSettings(queue) {
      const { maxLen } = EVENT_STREAM.events;
      await (await clientOf(queue)).hsetnx(queue.toKey('meta'), 'opts.maxLenEvents', maxLen);
    },
    ...FULL_REDIS,
    ...REDIS_STRANGERS,
    createQueue<Data>(name: string, telemetry?: Telemetry) {
      const options = {
        prefix: PREFIX,
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
      const options = { ...tuned, prefix: PREFIX };
      return target.kind === 'cluster'
        ? new ClusterWorker<Data>(name, process, openCluster(target, working), options)
        : new Worker<Data>(name, process, {
            ...options,
            connection: redisOptions(target, working) as ConnectionOptions,
          });
    },
  };
}

/**
 * By the job's own hash, of which `finishedOn` is there from its end until somebody has it done again. That there is a
 * hash is also what keeps another job with its id out, whatever lists it is in.
 */
async function jobStates<Data>(
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Map<string, JobState>> {
  const pipeline = (await clientOf(queue)).pipeline();
  for (const jobId of jobIds) pipeline.hmget(queue.toKey(jobId), 'timestamp', 'finishedOn');
  const states = new Map<string, JobState>();
  for (const [index, [error, value]] of ((await pipeline.exec()) ?? []).entries()) {
    if (error) throw error;
    const [timestamp, finishedOn] = value as (string | null)[];
    const jobId = jobIds[index];
    if (jobId !== undefined && timestamp !== null) states.set(jobId, finishedOn === null ? 'held' : 'ended');
  }
  return states;
}
