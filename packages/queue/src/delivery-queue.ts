import {
  type DeliveryJob,
  deliveryJobId,
  type LaneJob,
  laneJobId,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import type { QueueBackend } from './backends/index.ts';
import { DISPATCHER_LEVEL, dispatcherLevelOf } from './dispatcher-level.ts';
import { type NextJob, readNextJobs } from './next-job.ts';
import {
  addInBulks,
  countJobs,
  createProducer,
  findEvictionPolicy,
  findQueuedJobs,
  findQueuedOnAnyShard,
  replaceOrphans,
  type TelemetrySource,
} from './producer.ts';

/** A delivery that is added to the queue for its next attempt. */
export interface QueuedDelivery extends DeliveryJob {
  accountId: number;
  /** Milliseconds until the attempt is due; 0 for immediately. */
  delayMs: number;
  /** Remaining attempts of the cycle, this one included. */
  attemptsLeft: number;
  /** Trace context of the attempts; the active one when omitted. */
  traceContext?: string | null;
}

/** A lane with deferred deliveries. */
export interface WokenLane extends LaneJob {
  accountId: number;
  /** Milliseconds until the job of the lane is due; 0 when omitted. */
  delayMs?: number;
}

/** The producer's side of `webhook-deliveries`. */
export interface DeliveryQueue {
  /** Adds a job for each delivery whose cycle has none. Throws `QueueUnavailableError`. */
  add(deliveries: readonly QueuedDelivery[]): Promise<void>;
  /** Adds a job for each lane that has none. Throws `QueueUnavailableError`. */
  wakeLanes(lanes: readonly WokenLane[]): Promise<void>;
  /**
   * Adds deliveries that the queue has lost. Keys of orphaned jobs are removed first, so that their ids can be added
   * again. A queued delivery is not added again. Throws `QueueUnavailableError`.
   */
  requeue(deliveries: readonly QueuedDelivery[]): Promise<void>;
  /** Adds a job for each lane that has none, after removing the keys of orphaned jobs of lanes. */
  requeueLanes(lanes: readonly WokenLane[]): Promise<void>;
  /**
   * Removes up to `count` delayed jobs of each shard, those that are due latest, and returns their number. Maintenance
   * adds them again when they are due.
   */
  evictDelayed(count: number): Promise<number>;
  /**
   * Returns the job ids of the deliveries' cycles that are queued in any shard: their job is in a list or set that
   * workers take from, or a worker has it. An orphaned key, which is in no list, does not count. Costs, on a shard of
   * Redis, one call for each thousand deliveries and one pass over the wait list. A list of more than 2,000,000 entries
   * is not read: then orphaned keys count, too.
   */
  findQueued(deliveries: readonly DeliveryJob[]): Promise<Set<string>>;
  /** Returns the job ids of the lanes that have a queued job. */
  findQueuedLanes(lanes: readonly WokenLane[]): Promise<Set<string>>;
  /** Returns the subscriptions whose lane's job a worker is processing. */
  findActiveLanes(): Promise<Set<string>>;
  /**
   * Whether a dispatcher of an older release is connected, which does not support the features of this one's level. False
   * if the queue's server does not list its clients. Throws `QueueUnavailableError`.
   */
  hasOlderDispatcher(): Promise<boolean>;
  counts(): Promise<Record<string, number>>;
  /** Returns the waiting job that a worker would take next, for each shard that may have jobs; null when none waits. */
  nextJobs(): Promise<Map<number, NextJob | null>>;
  /** Returns the `maxmemory-policy` of a server that evicts jobs when it is full; null when all servers retain them. */
  evictionPolicy(): Promise<string | null>;
  close(): Promise<void>;
}

/** The worker's backoff strategy computes the wait before each retry (see the dispatcher's retry schedule). */
const DELIVERY_BACKOFF = 'delivery';

export function openDeliveryQueue(
  backend: QueueBackend,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
): DeliveryQueue {
  const producer = createProducer<DeliveryJob | LaneJob>(backend, WEBHOOK_DELIVERIES, onError, telemetry);
  return {
    add: (deliveries) => addInBulks(backend, producer, deliveries, toJob),
    wakeLanes: (lanes) => addInBulks(backend, producer, lanes, toLaneJob),
    requeue: (deliveries) => addInBulks(backend, producer, deliveries, toJob, replaceOrphans),
    requeueLanes: (lanes) => addInBulks(backend, producer, lanes, toLaneJob, replaceOrphans),
    async evictDelayed(count) {
      const counts = await producer.callEach(async (queue) => {
        const jobIds = await backend.lastDelayed(queue, count);
        await backend.discard(queue, jobIds);
        return jobIds.length;
      });
      return counts.reduce((sum, one) => sum + one, 0);
    },
    findQueued: (deliveries) =>
      findQueuedOnAnyShard(producer, deliveries, deliveryJobId, (queue, shardItems) =>
        findQueuedJobs(backend, queue, shardItems.map(deliveryJobId)),
      ),
    findQueuedLanes: (lanes) =>
      findQueuedOnAnyShard(producer, lanes, laneJobId, (queue, shardItems) =>
        findQueuedJobs(backend, queue, shardItems.map(laneJobId)),
      ),
    async findActiveLanes() {
      const active = await producer.callEach((queue) => queue.getActive());
      const lanes = active
        .flat()
        .flatMap(({ data }) => ('subscriptionId' in data ? [data.subscriptionId] : []));
      return new Set(lanes);
    },
    async hasOlderDispatcher() {
      // The list of a cluster contains the clients of all of its servers.
      const names = await producer.call((queue) => backend.workerNames(queue));
      return names.some((name) => dispatcherLevelOf(name) < DISPATCHER_LEVEL);
    },
    counts: () => countJobs(producer),
    nextJobs: () => readNextJobs(producer),
    evictionPolicy: () => findEvictionPolicy(backend, producer),
    close: () => producer.close(),
  };
}

/** The queue's server is available, but may evict jobs when it is full. */
class QueueEvictionError extends Error {
  readonly code = 'QUEUE_EVICTS';
  /** Public text for the service state. */
  readonly publicMessage: string;

  constructor(policy: string) {
    const publicMessage = `The queue's Redis has maxmemory-policy ${policy} and may drop jobs when it is full: set it to noeviction.`;
    super(publicMessage);
    this.publicMessage = publicMessage;
  }
}

/** Checks that the queue is available and retains its jobs. Throws `QueueUnavailableError` or {@link QueueEvictionError}. */
export async function requireNoEviction(queue: Pick<DeliveryQueue, 'evictionPolicy'>): Promise<void> {
  const policy = await queue.evictionPolicy();
  if (policy !== null) throw new QueueEvictionError(policy);
}

function toLaneJob({ subscriptionId, accountId, delayMs = 0 }: WokenLane) {
  const jobId = laneJobId({ subscriptionId });
  return {
    name: 'lane',
    data: { subscriptionId, accountId },
    opts: { jobId, ...(delayMs > 0 && { delay: delayMs }) },
  };
}

function toJob({ deliveryId, cycle, accountId, delayMs, attemptsLeft, traceContext }: QueuedDelivery) {
  return {
    name: 'deliver',
    data: { deliveryId, cycle, accountId },
    opts: {
      jobId: deliveryJobId({ deliveryId, cycle }),
      attempts: attemptsLeft,
      backoff: { type: DELIVERY_BACKOFF },
      // The worker's options determine the retention of ended jobs: in each job's options it would occupy memory of
      // Redis a million times.
      ...(delayMs > 0 ? { delay: delayMs } : {}),
      ...(traceContext && { telemetry: { metadata: traceContext } }),
    },
  };
}
