import { QUARANTINE_KINDS } from '@runhook/database';
import { type DependencyMetrics, registerQuarantined } from '@runhook/runtime';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { ACCOUNT_BUDGETS } from './http/account-budgets.ts';
import type { Relay } from './runs/relay.ts';
import { SIGN_IN_FAILURE_REASONS } from './sessions/sign-in-failures.ts';

/** Metrics of management, described in docs/observability.md and used by k8s/monitoring. */
export type ManagementMetrics = ReturnType<typeof createManagementMetrics>;

const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createManagementMetrics(registry: Registry) {
  const registers = [registry];
  const relayed = new Counter({
    name: 'runhook_relayed_events_total',
    help: 'Committed events of this process by result: sent to the queue, quarantined, left_to_reconciler.',
    labelNames: ['result'] as const,
    registers,
  });
  for (const result of ['sent', 'left_to_reconciler', 'quarantined'] as const) relayed.inc({ result }, 0);
  const quarantined = registerQuarantined(registers);
  for (const kind of QUARANTINE_KINDS) quarantined.inc({ kind }, 0);
  let waitingCount = () => 0;
  new Gauge({
    name: 'runhook_http_requests_waiting',
    help: 'Requests that wait for a slot of their account.',
    registers,
    collect() {
      this.set(waitingCount());
    },
  });
  let relayWaiting = (): Relay['backlog'] => ({ events: 0, oldestSeconds: 0 });
  new Gauge({
    name: 'runhook_relay_events',
    help: 'Committed events of this process that are not in the queue yet.',
    registers,
    collect() {
      this.set(relayWaiting().events);
    },
  });
  new Gauge({
    name: 'runhook_relay_oldest_age_seconds',
    help: 'Age of the oldest committed event that is not in the queue; 0 if there is none.',
    registers,
    collect() {
      this.set(relayWaiting().oldestSeconds);
    },
  });
  const replicaReads = new Counter({
    name: 'runhook_replica_reads_total',
    help: 'Reads that a replica may serve, by the server that did; none are counted without a replica.',
    labelNames: ['server'] as const,
    registers,
  });
  for (const server of ['replica', 'primary'] as const) replicaReads.inc({ server }, 0);
  const rejectedRequests = new Counter({
    name: 'runhook_http_requests_rejected_total',
    help: 'Requests rejected with 429 because their account had too many in this process, by budget.',
    labelNames: ['budget'] as const,
    registers,
  });
  for (const budget of ACCOUNT_BUDGETS) rejectedRequests.inc({ budget }, 0);
  let replicaLagMs = () => 0;
  new Gauge({
    name: 'runhook_replica_lag_seconds',
    help: 'Age of the data on the replica; 0 without a replica.',
    registers,
    collect() {
      this.set(replicaLagMs() / 1_000);
    },
  });
  let feedDelaySeconds = () => 0;
  new Gauge({
    name: 'runhook_feed_delay_seconds',
    help: 'Time for which an open transaction has kept newer events out of the feed.',
    registers,
    collect() {
      this.set(feedDelaySeconds());
    },
  });
  const signInFailures = new Counter({
    name: 'runhook_sign_in_failures_total',
    help: 'Failed sign-ins by reason; no password of limited, busy and single_sign_on was checked.',
    labelNames: ['reason'] as const,
    registers,
  });
  for (const reason of [...SIGN_IN_FAILURE_REASONS, 'single_sign_on']) signInFailures.inc({ reason }, 0);
  return {
    relayed,
    quarantined,
    replicaReads,
    signInFailures,
    /** Sets the function that returns the lag of the replica when metrics are collected. */
    measureReplica(lagMs: () => number) {
      replicaLagMs = lagMs;
    },
    /** Sets the function that returns the time for which the feed was held back when metrics are collected. */
    measureFeed(delaySeconds: () => number) {
      feedDelaySeconds = delaySeconds;
    },
    /** Sets the function that returns the backlog of the relay when metrics are collected. */
    measureRelay(waiting: () => Relay['backlog']) {
      relayWaiting = waiting;
    },
    /** Sets the function that returns the number of waiting requests when metrics are collected. */
    measureWaiting(count: () => number) {
      waitingCount = count;
    },
    rejectedRequests,
    accepted: new Counter({
      name: 'runhook_events_accepted_total',
      help: 'Events committed by REST calls.',
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
      help: 'Time from the arrival of a request to the end of its response.',
      labelNames: ['method', 'route'] as const,
      buckets: REQUEST_SECONDS,
      registers,
    }),
  };
}

/** Checks whether the database and the queue respond, and records the results. */
export async function measureDependencies(
  checks: Record<'database' | 'queue', () => Promise<unknown>>,
  dependencies: DependencyMetrics,
): Promise<void> {
  const recordCheck = async (name: 'database' | 'queue') =>
    await checks[name]().then(
      () => dependencies.note(name, true),
      () => dependencies.note(name, false),
    );
  await Promise.all([recordCheck('database'), recordCheck('queue')]);
}
