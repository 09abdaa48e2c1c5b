import {
  type DeliveryJob,
  deliveryJobId,
  type LaneJob,
  laneJobId,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import type { QueueBackend } from './backends/index.ts';
import { firstsInLine, type JobInLine } from './first-in-line.ts';
import {
  addInBulks,
  addInsteadOfOrphans,
  countsOf,
  createProducer,
  heldAnywhere,
  heldBy,
  policyOfAny,
  type TelemetrySource,
} from './producer.ts';

/** A delivery on its way to another attempt. */
export interface QueuedDelivery extends DeliveryJob {
  accountId: number;
  /** Milliseconds until the attempt is due; 0 for at once. */
  delayMs: number;
  /** Attempts the cycle has left, this one included. */
  attemptsLeft: number;
  /** The trace that the attempts belong to; the active one when omitted. */
  traceContext?: string | null;
}

/** A lane that has something parked. */
export interface WokenLane extends LaneJob {
  accountId: number;
  /** Milliseconds until its turn; at once when omitted. */
  delayMs?: number;
}

/** The producer's side of `webhook-deliveries`. */
export interface DeliveryQueue {
  /** Adds deliveries; one whose cycle is already queued adds nothing. Throws `QueueUnavailableError`. */
  add(deliveries: readonly QueuedDelivery[]): Promise<void>;
  /** Sees that each lane has its job; one that has it already gets no other. Throws `QueueUnavailableError`. */
  wakeLanes(lanes: readonly WokenLane[]): Promise<void>;
  /**
   * Adds deliveries that the queue has lost; the key of an orphaned job is removed first, so that its id can be added again. One that is
   * queued adds nothing. Throws `QueueUnavailableError`.
   */
  putBack(deliveries: readonly QueuedDelivery[]): Promise<void>;
  /** As `putBack`, for lanes of which any may have lost its job. */
  putBackLanes(lanes: readonly WokenLane[]): Promise<void>;
  /** Lets go of jobs for retries, the last ones first, and answers how many; the reconciler makes them again when due. */
  shed(count: number): Promise<number>;
  /**
   * Which of the deliveries' cycles are queued in any shard, by job id: their job is in a list or set that workers take from, or a
   * worker has it. An orphaned key, which is in no list, does not count. Costs one call for each thousand, and one pass over the wait list
   * for all of them, of at most 2,000,000 entries: if the list is longer, every job that has a key counts.
   */
  holds(deliveries: readonly DeliveryJob[]): Promise<Set<string>>;
  /** Which of the lanes have a queued job, by job id. */
  holdsLanes(lanes: readonly WokenLane[]): Promise<Set<string>>;
  /** Subscriptions whose lane's job a worker has in hand. */
  lanesAtWork(): Promise<Set<string>>;
  counts(): Promise<Record<string, number>>;
  /** The waiting job that a worker would take next, of each shard that may have jobs; null when none waits. */
  firstsInLine(): Promise<Map<number, JobInLine | null>>;
  /** What the `maxmemory-policy` of a server is that lets jobs go to make room; null when all of them keep theirs. */
  evictionPolicy(): Promise<string | null>;
  close(): Promise<void>;
}

/** The worker's own strategy answers the wait before each retry (see the dispatcher's retry schedule). */
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
    putBack: (deliveries) => addInBulks(backend, producer, deliveries, toJob, addInsteadOfOrphans),
    putBackLanes: (lanes) => addInBulks(backend, producer, lanes, toLaneJob, addInsteadOfOrphans),
    async shed(count) {
      const shed = await producer.callEach(async (queue) => {
        const jobIds = await backend.lastDelayed(queue, count);
        await backend.discard(queue, jobIds);
        return jobIds.length;
      });
      return shed.reduce((sum, one) => sum + one, 0);
    },
    holds: (deliveries) =>
      heldAnywhere(producer, deliveries, deliveryJobId, (queue, those) =>
        heldBy(backend, queue, those.map(deliveryJobId)),
      ),
    holdsLanes: (lanes) =>
      heldAnywhere(producer, lanes, laneJobId, (queue, those) =>
        heldBy(backend, queue, those.map(laneJobId)),
      ),
    async lanesAtWork() {
      const active = await producer.callEach((queue) => queue.getActive());
      const lanes = active
        .flat()
        .flatMap(({ data }) => ('subscriptionId' in data ? [data.subscriptionId] : []));
      return new Set(lanes);
    },
    counts: () => countsOf(producer),
    firstsInLine: () => firstsInLine(producer),
    evictionPolicy: () => policyOfAny(backend, producer),
    close: () => producer.close(),
  };
}

/** The queue's server answers, but may drop jobs when it is full. */
class QueueEvictsError extends Error {
  readonly code = 'QUEUE_EVICTS';
  /** For whoever asks how the service is. */
  readonly told: string;

  constructor(policy: string) {
    const told = `The queue's Redis has maxmemory-policy ${policy} and may drop jobs when it is full: set it to noeviction.`;
    super(told);
    this.told = told;
  }
}

/** Passes when the queue answers and keeps what it has. Throws `QueueUnavailableError` and {@link QueueEvictsError}. */
export async function requireKeeping(queue: Pick<DeliveryQueue, 'evictionPolicy'>): Promise<void> {
  const policy = await queue.evictionPolicy();
  if (policy !== null) throw new QueueEvictsError(policy);
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
      // What becomes of a job that is done or failed is for the worker to say: told here, it would take its place in
      // Redis a million times.
      ...(delayMs > 0 ? { delay: delayMs } : {}),
      ...(traceContext && { telemetry: { metadata: traceContext } }),
    },
  };
}
