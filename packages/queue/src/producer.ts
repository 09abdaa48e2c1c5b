import type { Queue } from 'bullmq';
import type { QueueBackend } from './queue-backend.ts';
import type { QueueTelemetry } from './queue-telemetry.ts';
import { withinCallTimeout } from './queue-unavailable.ts';

/**
 * A queue to add jobs to, opened by its first call. BullMQ remembers a first connection that failed for ever, so a
 * queue that did not become ready is thrown away and the next call opens another.
 */
export interface Producer<Data> {
  /** Runs one bounded call. Throws `QueueUnavailableError` when the queue did not take it. */
  call<T>(work: (queue: Queue<Data>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Asked when a queue is opened. */
export type TelemetrySource = () => Promise<QueueTelemetry | undefined>;

export function createProducer<Data>(
  backend: QueueBackend,
  name: string,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
): Producer<Data> {
  let ready: Promise<Queue<Data>> | undefined;

  async function open(): Promise<Queue<Data>> {
    const queue = backend.createQueue<Data>(name, await telemetry?.());
    queue.on('error', onError);
    try {
      await withinCallTimeout(queue.waitUntilReady());
      return queue;
    } catch (error) {
      ready = undefined;
      queue.close().catch(onError);
      throw error;
    }
  }

  return {
    async call(work) {
      ready ??= open();
      const queue = await ready;
      return await withinCallTimeout(work(queue));
    },
    async close() {
      const queue = await ready?.catch(() => undefined);
      await queue?.close();
    },
  };
}
