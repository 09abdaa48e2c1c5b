export type { Logger } from 'pino';
export { approximateBytes } from './approximate-bytes.ts';
export { MicroBatcher, type MicroBatcherOptions } from './batcher.ts';
export { type ContentEncoding, compressText, selectEncoding } from './compression.ts';
export {
  describeSettings,
  EnvironmentError,
  environmentRules,
  parseEnvironment,
  parseSettings,
  type SettingsOf,
} from './environment.ts';
export { callHalving, type RejectedItem } from './halving.ts';
export {
  createHealth,
  createHttpProbes,
  type Health,
  type HealthKind,
  type HealthOptions,
  type HealthReport,
  type HttpProbes,
  type ProbeServer,
  type ProbeServerOptions,
  startProbeServer,
} from './health.ts';
export { Lifecycle, type LifecycleOptions } from './lifecycle.ts';
export { addLogFields, createLogger, type LoggerOptions } from './logger.ts';
export {
  createMetricsRegistry,
  type DependencyMetrics,
  registerBlockedAddresses,
  registerDependencyMetrics,
  registerPoolMetrics,
  registerQuarantined,
  releaseVersion,
} from './metrics.ts';
export { type OpenServerClockOptions, openServerClock } from './open-server-clock.ts';
export { registerRecordHealth, watchRecord } from './record-health.ts';
export { Semaphore } from './semaphore.ts';
export { type Clock, LOCAL_CLOCK, ServerClock } from './server-clock.ts';
export { describeStartFailure } from './start-failure.ts';
export { collectStartupGarbage } from './startup-garbage.ts';
export {
  DeadlineError,
  type Periodic,
  startPeriodic,
  waitAtMost,
  withinDeadline,
  withJitter,
} from './timers.ts';
export { type OpenSpan, openTraces, type SpanAttributes, type SpanOptions, type Traces } from './traces.ts';
