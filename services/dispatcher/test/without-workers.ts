import { createLogger, createMetricsRegistry, Lifecycle } from '@runhook/runtime';
import { type Dispatcher, openDispatcher } from '../src/dispatcher.ts';
import { createDispatcherMetrics } from '../src/telemetry/metrics.ts';
import { noSpans } from '../src/telemetry/spans.ts';
import type { Harness } from './harness.ts';

export interface WithoutWorkers {
  dispatcher: Dispatcher;
  close(): Promise<void>;
}

/** Opens a dispatcher that takes no jobs, so that a test controls its calls and its stop. */
export function openWithoutWorkers(harness: Harness, stopping: AbortSignal): WithoutWorkers {
  const logger = createLogger({ service: 'dispatcher', level: 'silent' });
  const lifecycle = new Lifecycle({ logger });
  const dispatcher = openDispatcher({
    ...harness,
    lifecycle,
    stopping,
    drainEnd: new AbortController().signal,
    writes: { track: (_, write) => write() },
    clock: { nowMs: Date.now } as never,
    deliveryQueue: {
      wakeLanes: async () => {},
      findQueued: async () => new Set(),
      requeue: async () => {},
    } as never,
    metrics: createDispatcherMetrics(createMetricsRegistry({ service: 'test' })),
    spans: noSpans,
    logger,
  });
  return { dispatcher, close: () => lifecycle.close('test') };
}
