import { JOB_RUN_EVENTS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { defaultPartitionBytes, type Pool, runStatement } from '@runhook/database';
import type { DeliveryQueue, EventQueue } from '@runhook/queue';
import type { DependencyMetrics } from '@runhook/runtime';
import { Gauge, type Registry } from 'prom-client';
import { lanesWithDeferred } from '../record/deferred.ts';

const QUEUE_STATES = ['waiting', 'active', 'delayed', 'failed', 'paused'] as const;

/**
 * Selects the ages of the oldest items, by one row of each of three indexes, however much is pending, and counts the
 * accounts with full lanes.
 */
const OLDEST_DUE = `
  SELECT
    (SELECT extract(epoch FROM now() - next_attempt_at)::float8 FROM deliveries
     WHERE status = 'pending' AND next_attempt_at <= now() ORDER BY next_attempt_at LIMIT 1) AS "deliverySeconds",
    (SELECT extract(epoch FROM now() - created_at)::float8 FROM undispatched_events
     ORDER BY event_id LIMIT 1) AS "eventSeconds",
    (SELECT extract(epoch FROM now() - deferred_at)::float8 FROM deliveries
     WHERE deferred_at < 'infinity' ORDER BY deferred_at LIMIT 1) AS "deferredSeconds",
    (SELECT count(DISTINCT account_id)::int FROM subscriptions WHERE lane_full_since IS NOT NULL) AS "accountsOver"`;

const LANES_COUNTED_MAX = 1_000;

interface OldestRow {
  [column: string]: unknown;
  deliverySeconds: number | null;
  eventSeconds: number | null;
  deferredSeconds: number | null;
  accountsOver: number;
}

export interface BacklogDependencies {
  pool: Pool;
  events: Pick<EventQueue, 'counts' | 'nextJob'>;
  deliveries: Pick<DeliveryQueue, 'counts'>;
  dependencies: DependencyMetrics;
  registry: Registry;
  nowMs?: () => number;
}

/**
 * Measures the size and age of the backlog into gauges. PostgreSQL is the record: a due delivery counts even if the
 * queue has lost its job. An event that was published directly onto the queue is not on record until it is fanned out,
 * so the age of events is the maximum of both stores. A gauge that cannot be measured has no series.
 */
export function createBacklogMeasure(options: BacklogDependencies): () => Promise<void> {
  const { pool, events, deliveries, dependencies, registry, nowMs = Date.now } = options;
  const jobs = new Gauge({
    name: 'runhook_backlog_jobs',
    help: 'Jobs in the queues by state: waiting, active, delayed, failed, paused.',
    labelNames: ['queue', 'state'] as const,
    registers: [registry],
  });
  const oldest = new Gauge({
    name: 'runhook_backlog_oldest_due_age_seconds',
    help: 'Age of the oldest due delivery or event, by queue; 0 if nothing is due.',
    labelNames: ['queue'] as const,
    registers: [registry],
  });

  const lanes = new Gauge({
    name: 'runhook_lanes_with_deferred',
    help: `Subscriptions with deferred deliveries, counted up to ${LANES_COUNTED_MAX}.`,
    registers: [registry],
  });
  const deferredAge = new Gauge({
    name: 'runhook_deferred_oldest_age_seconds',
    help: 'Age of the oldest deferred delivery; 0 if there is none.',
    registers: [registry],
  });

  const accountsOver = new Gauge({
    name: 'runhook_accounts_over_pending_limit',
    help: 'Accounts with full lanes, from PENDING_DELIVERIES_PER_ACCOUNT deferred deliveries until below 90 % of it.',
    registers: [registry],
  });

  const defaultBytes = new Gauge({
    name: 'runhook_default_partition_bytes',
    help: 'Size of the default partition of each table of the log: rows of days that have no partition.',
    labelNames: ['table'] as const,
    registers: [registry],
  });

  async function measureQueue(): Promise<number | null> {
    try {
      const [eventCounts, deliveryCounts, first] = await Promise.all([
        events.counts(),
        deliveries.counts(),
        events.nextJob(),
      ]);
      for (const state of QUEUE_STATES) {
        jobs.set({ queue: JOB_RUN_EVENTS, state }, eventCounts[state] ?? 0);
        jobs.set({ queue: WEBHOOK_DELIVERIES, state }, deliveryCounts[state] ?? 0);
      }
      dependencies.note('queue', true);
      return first === null ? 0 : Math.max(0, (nowMs() - first.addedAtMs) / 1_000);
    } catch {
      jobs.reset();
      dependencies.note('queue', false);
      return null;
    }
  }

  async function measureRecord(): Promise<{ deliverySeconds: number; eventSeconds: number } | null> {
    try {
      const [row] = await runStatement<OldestRow>(pool, OLDEST_DUE, [], 'oldest-due');
      deferredAge.set(Math.max(0, row?.deferredSeconds ?? 0));
      accountsOver.set(row?.accountsOver ?? 0);
      lanes.set((await lanesWithDeferred(pool, '', LANES_COUNTED_MAX)).length);
      for (const [table, bytes] of Object.entries(await defaultPartitionBytes(pool)))
        defaultBytes.set({ table }, bytes);
      dependencies.note('database', true);
      return { deliverySeconds: row?.deliverySeconds ?? 0, eventSeconds: row?.eventSeconds ?? 0 };
    } catch {
      for (const gauge of [deferredAge, accountsOver, lanes]) gauge.remove();
      defaultBytes.reset();
      dependencies.note('database', false);
      return null;
    }
  }

  return async () => {
    const [queueSeconds, record] = await Promise.all([measureQueue(), measureRecord()]);
    oldest.reset();
    if (record) oldest.set({ queue: WEBHOOK_DELIVERIES }, Math.max(0, record.deliverySeconds));
    const eventAges = [queueSeconds, record?.eventSeconds].filter((age) => typeof age === 'number');
    if (eventAges.length > 0) oldest.set({ queue: JOB_RUN_EVENTS }, Math.max(0, ...eventAges));
  };
}
