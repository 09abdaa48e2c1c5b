import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { Lifecycle } from './lifecycle.ts';
import { registerClockMetrics } from './metrics.ts';
import { ServerClock } from './server-clock.ts';
import { startPeriodic } from './timers.ts';

const MEASURE_EVERY_MS = 10_000;

export interface OpenServerClockOptions {
  /** Returns the time of PostgreSQL, in milliseconds since the epoch. */
  read: () => Promise<number>;
  lifecycle: Lifecycle;
  registry: Registry;
  logger: Logger;
}

/** Opens the clock of PostgreSQL, which is measured regularly until the lifecycle ends, with its offset as a metric. */
export function openServerClock({ read, lifecycle, registry, logger }: OpenServerClockOptions): ServerClock {
  const clock = new ServerClock({ read });
  registerClockMetrics(registry, clock);
  const measuring = startPeriodic(
    MEASURE_EVERY_MS,
    () => clock.measure(),
    (err) => logger.warn({ err }, 'the clock of the database could not be read'),
  );
  lifecycle.onClose('clock', () => void measuring.stop());
  return clock;
}
