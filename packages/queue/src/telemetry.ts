import type { SpanKind, Telemetry } from 'bullmq';

/** BullMQ's telemetry interface, for queues and workers of a process that exports traces. */
export type QueueTelemetry = Telemetry;

type Span = ReturnType<Telemetry['tracer']['startSpan']>;

/** Span for work that belongs to no trace. */
const NO_SPAN: Span = {
  setSpanOnContext: (context) => context,
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};

/**
 * Loads bullmq-otel over the OpenTelemetry that is set up in this process. A job carries the context that is active
 * when it is added, or its `opts.telemetry.metadata` when one call adds jobs of many traces. Each processing of the job
 * continues that trace.
 *
 * Other work of BullMQ (locks, the stalled check, such mixed calls) belongs to no trace and creates none: only the
 * processing of a job may begin a trace.
 */
export async function openQueueTelemetry(): Promise<QueueTelemetry> {
  const [{ BullMQOtel }, { context, ROOT_CONTEXT, trace }] = await Promise.all([
    import('bullmq-otel'),
    import('@opentelemetry/api'),
  ]);
  const { tracer, contextManager } = new BullMQOtel({ tracerName: 'bullmq' });
  const consumer: SpanKind.CONSUMER = 4;
  return {
    tracer: {
      startSpan(name, options, parent) {
        const hasTrace = trace.getSpan(parent ?? context.active()) !== undefined;
        if (!hasTrace && options?.kind !== consumer) return NO_SPAN;
        return tracer.startSpan(name, options, parent);
      },
    },
    contextManager: {
      with: (active, work) => contextManager.with(active, work),
      active: () => contextManager.active(),
      root: () => ROOT_CONTEXT,
      getMetadata: (active) => contextManager.getMetadata(active),
      // Any client of the queue may write this metadata, and an error here would end the loop of BullMQ's worker.
      fromMetadata(active, metadata) {
        try {
          return contextManager.fromMetadata(active, metadata);
        } catch {
          return active;
        }
      },
    },
  };
}
