import type { Logger } from 'pino';

/** Values of span attributes. They must be bounded, and never contain a payload, a secret or a complete URL. */
export type SpanAttributes = Record<string, string | number | boolean>;

export interface SpanOptions {
  /** Span kind of OpenTelemetry; default `internal`. */
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  attributes?: SpanAttributes;
  /**
   * Parent of the span: a value of {@link Traces.serializeContext}, or headers with a `traceparent`; default: the
   * active span. Null or an invalid value starts a new trace.
   */
  parent?: string | Record<string, unknown> | null;
}

/** A span in progress, which must be ended. */
export interface OpenSpan {
  /** Runs work inside of the span: spans that it starts are children. */
  run<T>(work: () => T): T;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** @param code a value from a bounded set, as `error.type` of the semantic conventions */
  fail(code: string): void;
  end(): void;
}

/** Field names that OpenTelemetry specifies for logs of other formats. */
export interface TraceIds {
  trace_id: string;
  span_id: string;
}

/** Emits the work of a process as OpenTelemetry spans. */
export interface Traces {
  start(name: string, options?: SpanOptions): OpenSpan;
  /** Runs work inside of a new span, which fails if the work throws. */
  withSpan<T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>): Promise<T>;
  /** Returns the active span as text, to store in a row or a queue job; null if there is none. */
  serializeContext(): string | null;
  /** Returns the active span as W3C headers: `traceparent` and, if present, `tracestate`. */
  headers(): Record<string, string>;
  /** Returns the ids of the active span for a log line; an empty object if there is none. */
  ids(): TraceIds | Record<string, never>;
  /** Runs work outside of any trace, because work that several traces share belongs to none of them. */
  runDetached<T>(work: () => T): T;
  /** Exports the remaining spans. */
  close(): Promise<void>;
}

/**
 * Opens the traces of this process; null unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`
 * is set (and `OTEL_SDK_DISABLED` is not "true"). The SDK is loaded only if needed; it reads the other `OTEL_…`
 * variables itself.
 */
export async function openTraces(
  service: string,
  logger: Pick<Logger, 'warn'>,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Traces | null> {
  const endpoint = environment.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || environment.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (!endpoint || environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return null;
  const { startTraceSdk } = await import('./trace-sdk.ts');
  return startTraceSdk(service, logger);
}
