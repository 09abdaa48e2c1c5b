import { setTimeout as wait } from 'node:timers/promises';
import { deliveryJobId } from '@runhook/contract';
import { type DeliveryQueue, type QueuedDelivery, QueueFullError, type WokenLane } from '@runhook/queue';
import { type Logger, MicroBatcher } from '@runhook/runtime';
import { retryWhileUnavailable, StoppingError } from './record/retry-while-unavailable.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { Spans } from './telemetry/spans.ts';

const BATCH_SIZE_MAX = 500;
const BATCH_SLOTS = 2;
const SPACING_MS = 5;

export interface DeliveryEnqueuerOptions {
  deliveryQueue: Pick<DeliveryQueue, 'add' | 'requeue' | 'findQueued' | 'wakeLanes'>;
  /** Ends the waits for an unavailable queue. */
  stopping: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize'>;
  spans: Spans;
  logger: Logger;
}

/** Minimum interval between two calls that add missing jobs of lanes, however many deliveries are deferred. */
const WAKE_EVERY_MS = 50;

/** Adds jobs of deliveries and lanes to `webhook-deliveries` in batches; waits while the queue is unavailable. */
export class DeliveryEnqueuer {
  readonly #spans: Spans;
  readonly #options: DeliveryEnqueuerOptions;
  readonly #batcher: MicroBatcher<QueuedDelivery, void>;
  /** Lanes to wake, by subscription. */
  readonly #pendingLanes = new Map<string, WokenLane>();
  #waking: Promise<void> | null = null;

  constructor(options: DeliveryEnqueuerOptions) {
    const { metrics, spans } = options;
    this.#options = options;
    this.#spans = spans;
    this.#batcher = new MicroBatcher<QueuedDelivery, void>({
      run: async (deliveries) => {
        await spans.runDetached(() =>
          retryWhileUnavailable(options, () => ignoreQueueFull(() => options.deliveryQueue.add(deliveries))),
        );
        return deliveries.map(() => undefined);
      },
      sizeMax: BATCH_SIZE_MAX,
      slots: BATCH_SLOTS,
      spacingMs: SPACING_MS,
      isItemFault: () => false,
      onBatch: metrics.batchSize.enqueue,
    });
  }

  /** Resolves once the queue has the delivery or is full. Deliveries of a batch belong to different traces. */
  enqueue(delivery: Omit<QueuedDelivery, 'traceContext'>): Promise<void> {
    return this.#batcher.add({ traceContext: this.#spans.serializeContext(), ...delivery });
  }

  /** Adds deliveries that are not queued in any shard; a job may be in the former shard of its account. */
  async enqueueMissing(deliveries: readonly Omit<QueuedDelivery, 'traceContext'>[]): Promise<void> {
    const { deliveryQueue } = this.#options;
    const queued = await retryWhileUnavailable(this.#options, () => deliveryQueue.findQueued(deliveries));
    const traceContext = this.#spans.serializeContext();
    const missing = deliveries
      .filter((delivery) => !queued.has(deliveryJobId(delivery)))
      .map((delivery) => ({ traceContext, ...delivery }));
    await retryWhileUnavailable(this.#options, () => ignoreQueueFull(() => deliveryQueue.requeue(missing)));
  }

  /**
   * Ensures, usually in 50 ms, that a lane has its job. Callers need not wait: deferred deliveries are on record, and
   * maintenance wakes lanes that were not woken.
   */
  wakeLane(lane: WokenLane): void {
    this.#pendingLanes.set(lane.subscriptionId, lane);
    this.#waking ??= this.#wake().finally(() => {
      this.#waking = null;
    });
  }

  async #wake(): Promise<void> {
    const { deliveryQueue, logger, stopping } = this.#options;
    try {
      while (this.#pendingLanes.size > 0 && !stopping.aborted) {
        const lanes = [...this.#pendingLanes.values()];
        this.#pendingLanes.clear();
        await this.#spans.runDetached(() =>
          retryWhileUnavailable(this.#options, () => deliveryQueue.wakeLanes(lanes)),
        );
        await wait(WAKE_EVERY_MS);
      }
    } catch (err) {
      if (!(err instanceof StoppingError))
        logger.warn({ err }, 'lanes could not be woken; maintenance will wake them');
    }
  }
}

/** Resolves if the queue is full: retries are on record, and the reconciler queues them once there is capacity. */
async function ignoreQueueFull(add: () => Promise<void>): Promise<void> {
  try {
    await add();
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error;
  }
}
