import type { SpanKind, Telemetry } from 'bullmq';

/** How BullMQ tells of its work; given to queues and workers of a process that exports traces. */
export type QueueTelemetry = Telemetry;

type Span = ReturnType<Telemetry['tracer']['startSpan']>;

/** For work that belongs to no trace. */
const NO_SPAN: Span = {
  setSpanOnContext: (context) => context,
  setAttribute: () => undefined,
  setAttributes: () => undefined,
  addEvent: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};

/**
 * bullmq-otel over the OpenTelemetry that is set up in this process, loaded only when it is asked for. A job carries the
 * context that is active when it is added, or its own (`opts.telemetry.metadata`) when one call adds jobs of many
 * traces, and its processing continues that one, in each of its turns.
 *
 * What BullMQ does beside jobs (locks, the stalled check, such mixed calls) belongs to nobody's trace and makes none:
 * only the processing of a job may begin one.
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
      // Whoever reaches the queue may write it; BullMQ would end the worker's loop on an error here.
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
