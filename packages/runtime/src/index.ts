export type { Logger } from 'pino';
export { describeSettings } from './describe-settings.ts';
export { EnvironmentError, parseEnvironment } from './environment.ts';
export { environmentRules } from './environment-rules.ts';
export {
  createHealth,
  type Health,
  type HealthKind,
  type HealthOptions,
  type HealthReport,
} from './health.ts';
export { createHttpProbes, type HttpProbes } from './http-probes.ts';
export { Lifecycle, type LifecycleOptions } from './lifecycle.ts';
export { createLogger, type LoggerOptions } from './logger.ts';
export {
  createMetricsRegistry,
  type DependencyMetrics,
  registerBlockedAddresses,
  registerDependencyMetrics,
  registerPoolMetrics,
} from './metrics.ts';
export { type Periodic, startPeriodic } from './periodic.ts';
export { type ProbeServer, type ProbeServerOptions, startProbeServer } from './probe-server.ts';
export { parseSettings, type SettingsOf } from './settings.ts';
export { type OpenSpan, openTraces, type SpanAttributes, type SpanOptions, type Traces } from './traces.ts';
