import { expect, test } from '@jest/globals';
import { createHealth } from '../src/health.ts';
import { createMetricsRegistry } from '../src/metrics.ts';
import { registerRecordHealth } from '../src/record-health.ts';

test.each([
  ['writable', { ok: true }, 1],
  ['unwritable', { ok: true, status: 'degraded' }, 0],
  ['process_fault', { ok: false }, 0],
] as const)('a record that is %s is reported by the probe and the metric', async (state, report, value) => {
  const health = createHealth();
  const registry = createMetricsRegistry({ service: 'test' });
  registerRecordHealth(health, registry, () => state);
  const { checks, ...body } = await health.report('ready');
  expect(body).toEqual(report);
  expect(checks).toMatchObject({
    record: { ok: state !== 'unwritable' },
    'record connections': { ok: state !== 'process_fault' },
  });
  expect(await registry.metrics()).toMatch(new RegExp(`^runhook_record_writable\\{.*\\} ${value}$`, 'm'));
});
