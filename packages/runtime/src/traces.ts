import type { Logger } from 'pino';

/** Values that a span may carry: bounded ones; never a payload, a secret or a whole URL. */
export type SpanAttributes = Record<string, string | number | boolean>;

export interface SpanOptions {
  /** OpenTelemetry's span kinds; `internal` when omitted. */
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  attributes?: SpanAttributes;
  /**
   * Where the span belongs: what {@link Traces.carried} gave, or headers with a `traceparent`. The span that is active
   * when omitted. What cannot be read begins a trace of its own.
   */
  parent?: string | Record<string, unknown> | null;
}

/** A span that was begun and must be ended. */
export interface OpenSpan {
  /** Runs work inside the span: what it begins belongs below. */
  run<T>(work: () => T): T;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** @param code a bounded word, as `error.type` of the semantic conventions */
  fail(code: string): void;
  end(): void;
}

/** Named as OpenTelemetry names them in logs that are not its own. */
export interface TraceIds {
  trace_id: string;
  span_id: string;
}

/** What a process tells of its work as OpenTelemetry spans. */
export interface Traces {
  start(name: string, options?: SpanOptions): OpenSpan;
  /** A span around work; it fails when the work throws. */
  within<T>(name: string, options: SpanOptions, work: (span: OpenSpan) => Promise<T>): Promise<T>;
  /** The active span as text, for a row or a queue job to carry; null when there is none. */
  carried(): string | null;
  /** The active span as W3C headers, `traceparent` and perhaps `tracestate`. */
  headers(): Record<string, string>;
  /** The active span, to find it by from a log line; nothing when there is none. */
  ids(): TraceIds | Record<string, never>;
  /** Runs work outside every trace: what many traces share belongs to none of them. */
  detached<T>(work: () => T): T;
  /** Exports what is left. */
  close(): Promise<void>;
}

/**
 * Traces of this process, or null unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set
 * (and `OTEL_SDK_DISABLED` is not "true"). The SDK is loaded here and only then; it reads the other `OTEL_…` variables
 * itself.
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
