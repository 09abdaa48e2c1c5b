import {
  type Context,
  context,
  DiagLogLevel,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Logger } from 'pino';
import { releaseVersion } from './metrics.ts';
import type { OpenSpan, SpanOptions, TraceIds, Traces } from './traces.ts';

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/**
 * Sets up OpenTelemetry for the whole process, over OTLP/HTTP with JSON. Imported only if traces are enabled. The
 * baggage of a caller is not forwarded, because its size and content are not limited.
 */
export function startTraceSdk(service: string, logger: Pick<Logger, 'warn'>): Traces {
  const warn = (message: string, ...details: unknown[]) =>
    logger.warn({ details: details.map(String) }, `traces: ${message}`);
  diag.setLogger(
    { error: warn, warn, info: () => {}, debug: () => {}, verbose: () => {} },
    DiagLogLevel.WARN,
  );
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(
        resourceFromAttributes({
          'service.name': `runhook-${service}`,
          'service.namespace': 'runhook',
          'service.version': releaseVersion(),
        }),
      )
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  const tracer = provider.getTracer('runhook');

  function start(name: string, { kind = 'internal', attributes = {}, parent }: SpanOptions = {}): OpenSpan {
    const parentContext = parent === undefined ? context.active() : parseContext(parent);
    const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, parentContext);
    return openSpan(span, trace.setSpan(parentContext, span));
  }

  return {
    start,
    async withSpan(name, options, work) {
      const span = start(name, options);
      try {
        return await span.run(() => work(span));
      } catch (error) {
        span.fail(error instanceof Error ? error.name : 'unknown');
        throw error;
      } finally {
        span.end();
      }
    },
    serializeContext: () => (trace.getSpan(context.active()) ? JSON.stringify(traceHeaders()) : null),
    headers: traceHeaders,
    ids,
    runDetached: (work) => context.with(ROOT_CONTEXT, work),
    close: () => provider.shutdown(),
  };
}

function openSpan(span: Span, spanContext: Context): OpenSpan {
  return {
    run: (work) => context.with(spanContext, work),
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes(attributes),
    // Exports the code only, because an error's message may contain hosts, SQL or a body.
    fail: (code) => void span.setAttribute('error.type', code).setStatus({ code: SpanStatusCode.ERROR }),
    end: () => span.end(),
  };
}

function ids(): TraceIds | Record<string, never> {
  const active = trace.getSpan(context.active())?.spanContext();
  return active === undefined ? {} : { trace_id: active.traceId, span_id: active.spanId };
}

function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** A carrier may come from any program that reaches the queue: invalid text starts a new trace instead of failing. */
function parseContext(parent: string | Record<string, unknown> | null): Context {
  if (parent === null) return ROOT_CONTEXT;
  if (typeof parent !== 'string') return propagation.extract(ROOT_CONTEXT, parent);
  try {
    const carrier: unknown = JSON.parse(parent);
    return typeof carrier === 'object' ? propagation.extract(ROOT_CONTEXT, carrier) : ROOT_CONTEXT;
  } catch {
    return ROOT_CONTEXT;
  }
}
