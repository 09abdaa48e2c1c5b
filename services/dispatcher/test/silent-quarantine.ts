import type { Pool } from '@runhook/database';
import { createLogger, createMetricsRegistry } from '@runhook/runtime';
import { Quarantine } from '../src/record/quarantine.ts';
import { createDispatcherMetrics } from '../src/telemetry/metrics.ts';

/** Creates a quarantine without logs. Not in harness.ts, which loads the complete dispatcher. */
export function testQuarantine(pool: Pool): Quarantine {
  const metrics = createDispatcherMetrics(createMetricsRegistry({ service: 'test' }));
  const logger = createLogger({ service: 'test', level: 'silent' });
  return new Quarantine({ pool, stopping: new AbortController().signal, metrics, logger });
}
