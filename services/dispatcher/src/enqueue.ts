import type { DeliveryQueue, QueuedDelivery } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import { MicroBatcher } from './record/batcher.ts';
import { retryWhileUnavailable, StoppingError } from './record/retry-while-unavailable.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { Spans } from './telemetry/spans.ts';

const BATCH_SIZE_MAX = 500;
const BATCH_SLOTS = 2;
const SPACING_MS = 5;

export interface DeliveryEnqueuerOptions {
  deliveryQueue: Pick<DeliveryQueue, 'add'>;
  /** Ends the waits for a queue that is away. */
  stopping: AbortSignal;
  metrics: Pick<DispatcherMetrics, 'batchSize'>;
  spans: Spans;
  logger: Logger;
}

/** Puts deliveries into `webhook-deliveries`, those of about the same time together, as soon as the queue is there. */
export class DeliveryEnqueuer {
  readonly #spans: Spans;
  readonly #batcher: MicroBatcher<QueuedDelivery, void>;

  constructor(options: DeliveryEnqueuerOptions) {
    const { deliveryQueue, metrics, spans } = options;
    this.#spans = spans;
    this.#batcher = new MicroBatcher<QueuedDelivery, void>({
      run: async (deliveries) => {
        await spans.detached(() => retryWhileUnavailable(options, () => deliveryQueue.add(deliveries)));
        return deliveries.map(() => undefined);
      },
      sizeMax: BATCH_SIZE_MAX,
      slots: BATCH_SLOTS,
      spacingMs: SPACING_MS,
      mayBeItemFault: (error) => !(error instanceof StoppingError),
      onBatch: metrics.batchSize.enqueue,
    });
  }

  /** Resolves once the queue has it. Batches are made of deliveries of many traces, so each takes its own along. */
  enqueue(delivery: Omit<QueuedDelivery, 'traceContext'>): Promise<void> {
    return this.#batcher.add({ ...delivery, traceContext: this.#spans.carried() });
  }
}
