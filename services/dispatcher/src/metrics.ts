import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

export type DispatcherMetrics = ReturnType<typeof createDispatcherMetrics>;

export function createDispatcherMetrics(registry: Registry) {
  const registers = [registry];
  return {
    events: new Counter({
      name: 'runhook_events_total',
      help: 'Event jobs by what became of them: fanned_out, duplicate, resumed, malformed.',
      labelNames: ['result'] as const,
      registers,
    }),
    deliveries: new Counter({
      name: 'runhook_deliveries_total',
      help: 'Deliveries made by fan-out, by where their first attempt happens: in_place or overflow.',
      labelNames: ['route'] as const,
      registers,
    }),
    attempts: new Counter({
      name: 'runhook_attempts_total',
      help: 'Attempts by outcome: delivered, retry, failed.',
      labelNames: ['outcome'] as const,
      registers,
    }),
    cancelled: new Counter({
      name: 'runhook_deliveries_cancelled_total',
      help: 'Pending deliveries cancelled when their turn came.',
      registers,
    }),
    attemptDuration: new Histogram({
      name: 'runhook_attempt_duration_seconds',
      help: 'Time from the start of an attempt to its end.',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    reconciled: new Counter({
      name: 'runhook_reconciled_total',
      help: 'What the reconciler found pending in PostgreSQL and gone from the queue, and put back.',
      labelNames: ['kind'] as const,
      registers,
    }),
    reconcilerLastRun: new Gauge({
      name: 'runhook_reconciler_last_run_timestamp_seconds',
      help: 'When this dispatcher last ran the reconciler; 0 if it never did.',
      registers,
    }),
    recovered: new Counter({
      name: 'runhook_recovered_deliveries_total',
      help: 'Deliveries that recoveries put back.',
      registers,
    }),
    stalledJobs: new Counter({
      name: 'runhook_stalled_jobs_total',
      help: 'Queue jobs that came back because their worker stopped renewing its lock.',
      labelNames: ['queue'] as const,
      registers,
    }),
  };
}
