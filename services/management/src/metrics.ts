import type { Pool } from '@runhook/database';
import type { DependencyMetrics } from '@runhook/runtime';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { measureOutbox } from './runs/outbox.ts';
import type { Relay } from './runs/relay.ts';

/** docs/observability.md lists what they mean; k8s/monitoring uses them. */
export type ManagementMetrics = ReturnType<typeof createManagementMetrics>;

const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createManagementMetrics(registry: Registry) {
  const registers = [registry];
  const relayed = new Counter({
    name: 'runhook_relayed_events_total',
    help: 'Events that left the outbox: sent to the queue, or vanished with retention before.',
    labelNames: ['result'] as const,
    registers,
  });
  for (const result of ['sent', 'vanished'] as const) relayed.inc({ result }, 0);
  let waitingCount = () => 0;
  new Gauge({
    name: 'runhook_http_requests_waiting',
    help: 'Requests that wait for a place of their account at the database.',
    registers,
    collect() {
      this.set(waitingCount());
    },
  });
  return {
    relayed,
    /** Tells how many requests wait, whenever the metrics are read. */
    measureWaiting(count: () => number) {
      waitingCount = count;
    },
    refused: new Counter({
      name: 'runhook_http_requests_refused_total',
      help: 'Requests answered 429 because their account had too many in this process.',
      registers,
    }),
    accepted: new Counter({
      name: 'runhook_events_accepted_total',
      help: 'Events that were committed with what a job runner reported over REST.',
      registers,
    }),
    requests: new Counter({
      name: 'runhook_http_requests_total',
      help: 'Requests by method, route pattern ("none" when no route matched) and class of the status.',
      labelNames: ['method', 'route', 'status_class'] as const,
      registers,
    }),
    requestDuration: new Histogram({
      name: 'runhook_http_request_duration_seconds',
      help: 'Time from the arrival of a request to the end of its answer.',
      labelNames: ['method', 'route'] as const,
      buckets: REQUEST_SECONDS,
      registers,
    }),
  };
}

/**
 * Measures what waits in the outbox, into gauges, and whether the database and the queue answer. What cannot be measured
 * has no series.
 */
export function createOutboxMeasure(options: {
  pool: Pool;
  relay: Pick<Relay, 'emptyUpTo'>;
  queue: { counts(): Promise<unknown> };
  dependencies: DependencyMetrics;
  registry: Registry;
}): () => Promise<void> {
  const { pool, relay, queue, dependencies, registry } = options;
  const registers = [registry];
  const events = new Gauge({
    name: 'runhook_outbox_events',
    help: 'Committed events that wait for the relay; counted up to 100,000.',
    registers,
  });
  const oldest = new Gauge({
    name: 'runhook_outbox_oldest_age_seconds',
    help: 'Age of the oldest event that waits for the relay; 0 when none does.',
    registers,
  });

  async function measureDatabase(): Promise<void> {
    try {
      const outbox = await measureOutbox(pool, relay.emptyUpTo);
      events.set(outbox.events);
      oldest.set(outbox.oldestSeconds);
      dependencies.note('database', true);
    } catch {
      events.remove();
      oldest.remove();
      dependencies.note('database', false);
    }
  }
  async function measureQueue(): Promise<void> {
    await queue.counts().then(
      () => dependencies.note('queue', true),
      () => dependencies.note('queue', false),
    );
  }
  return async () => void (await Promise.all([measureDatabase(), measureQueue()]));
}
