import type { Pool } from '@runhook/database';
import { createLogger, createMetricsRegistry } from '@runhook/runtime';
import { Quarantine } from '../src/record/quarantine.ts';
import { createDispatcherMetrics } from '../src/telemetry/metrics.ts';

/** Not in harness.ts, which loads the whole dispatcher: tests of the record alone do not need its queue, its HTTP client and its settings. */
export function testQuarantine(pool: Pool): Quarantine {
  const metrics = createDispatcherMetrics(createMetricsRegistry({ service: 'test' }));
  const logger = createLogger({ service: 'test', level: 'silent' });
  return new Quarantine({ pool, stopping: new AbortController().signal, metrics, logger });
}
