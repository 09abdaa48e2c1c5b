import { JOB_RUN_EVENTS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import { QUARANTINE_KINDS } from '@runhook/database';
import { registerBlockedAddresses, registerQuarantined } from '@runhook/runtime';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { MESSAGE_STEPS_RESULTS } from '../record/message-steps.ts';

/** docs/observability.md describes these metrics; k8s/monitoring uses them. */
export type DispatcherMetrics = ReturnType<typeof createDispatcherMetrics>;

/** Counts work in flight. The metrics read these plain numbers on collection, so that counting costs nothing. */
export interface InFlight {
  attempts: number;
}

const EVENT_RESULTS = [
  'fanned_out',
  'duplicate',
  'resumed',
  'malformed',
  'conflict',
  'out_of_range',
] as const;
const DELIVERY_ROUTES = ['immediate', 'deferred', 'cancelled'] as const;
const ATTEMPT_OUTCOMES = ['delivered', 'retry', 'failed'] as const;
const DELIVERY_OUTCOMES = ['delivered', 'failed', 'cancelled'] as const;
const BATCHER_NAMES = [
  'load_subscriptions',
  'load_event_states',
  'commit',
  'commit_attempted',
  'load_deliveries',
  'defer',
  'record_attempts',
  'cancel',
  'release_successors',
  'change_blocks',
  'enqueue',
] as const;

const ATTEMPT_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const WAIT_SECONDS = [0.1, 1, 10, 30, 60, 120, 240, 480, 900, 1_800, 3_600];
const BATCH_SIZE_BUCKETS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

export function createDispatcherMetrics(registry: Registry) {
  const registers = [registry];
  const inFlight: InFlight = { attempts: 0 };
  new Gauge({
    name: 'runhook_attempts_in_flight',
    help: 'Requests to endpoints that are in flight.',
    registers,
    collect() {
      this.set(inFlight.attempts);
    },
  });
  return {
    ...flowMetrics(registers),
    ...attemptMetrics(registers),
    ...maintenanceMetrics(registers),
    blockedAddresses: registerBlockedAddresses(registry),
    inFlight,
  };
}

function flowMetrics(registers: Registry[]) {
  const batchSize = new Histogram({
    name: 'runhook_batch_size',
    help: 'Items in one call of the database or the queue, by the kind of call.',
    labelNames: ['batch'] as const,
    buckets: BATCH_SIZE_BUCKETS,
    registers,
  });
  return {
    events: children(
      EVENT_RESULTS,
      (result) => ({ result }),
      new Counter({
        name: 'runhook_events_total',
        help: 'Processed events by result: fanned_out, duplicate, resumed, malformed, conflict, out_of_range.',
        labelNames: ['result'] as const,
        registers,
      }),
    ),
    messageSteps: children(
      MESSAGE_STEPS_RESULTS,
      (result) => ({ result }),
      new Counter({
        name: 'runhook_message_steps_total',
        help: 'Messages of the queue with steps of a run by result: stored; left out as too_large, invalid, over_limit, rejected.',
        labelNames: ['result'] as const,
        registers,
      }),
    ),
    fanOutSize: new Histogram({
      name: 'runhook_fan_out_deliveries',
      help: 'Deliveries created by one event.',
      buckets: [0, ...BATCH_SIZE_BUCKETS, 1_000],
      registers,
    }),
    deliveries: children(
      DELIVERY_ROUTES,
      (route) => ({ route }),
      new Counter({
        name: 'runhook_deliveries_total',
        help: 'Deliveries created by fan-out: attempted immediately; without a slot or permits deferred, or cancelled in a full lane.',
        labelNames: ['route'] as const,
        registers,
      }),
    ),
    retriesDeferred: new Counter({
      name: 'runhook_retries_deferred_total',
      help: 'Retries and redeliveries that were deferred because their lane had no slot or their account no permits.',
      registers,
    }),
    completed: children(
      DELIVERY_OUTCOMES,
      (outcome) => ({ outcome }),
      new Counter({
        name: 'runhook_deliveries_completed_total',
        help: 'Completed deliveries: delivered, failed (no attempts left, or deferred for a day), cancelled.',
        labelNames: ['outcome'] as const,
        registers,
      }),
    ),
    /** Called with the size of each batch. */
    batchSize: Object.fromEntries(
      BATCHER_NAMES.map((batch) => [batch, (size: number) => batchSize.observe({ batch }, size)]),
    ) as Record<(typeof BATCHER_NAMES)[number], (size: number) => void>,
  };
}

function attemptMetrics(registers: Registry[]) {
  return {
    attempts: children(
      ATTEMPT_OUTCOMES,
      (outcome) => ({ outcome }),
      new Counter({
        name: 'runhook_attempts_total',
        help: 'Attempts by outcome: delivered, retry, failed.',
        labelNames: ['outcome'] as const,
        registers,
      }),
    ),
    /** Labelled by the error codes of the log: a closed list (packages/egress and `unsuccessful_status`). */
    attemptErrors: new Counter({
      name: 'runhook_attempt_errors_total',
      help: 'Unsuccessful attempts by the error code of the log.',
      labelNames: ['code'] as const,
      registers,
    }),
    attemptDuration: new Histogram({
      name: 'runhook_attempt_duration_seconds',
      help: 'Time from the start of an attempt to its end.',
      buckets: ATTEMPT_SECONDS,
      registers,
    }),
    eventToFirstAttempt: new Histogram({
      name: 'runhook_event_to_first_attempt_seconds',
      help: "Time from the timestamp of an event to the start of a delivery's first attempt.",
      buckets: LATENCY_SECONDS,
      registers,
    }),
    retryWait: new Histogram({
      name: 'runhook_retry_wait_seconds',
      help: 'Delay until the next attempt, set after a failed one.',
      buckets: WAIT_SECONDS,
      registers,
    }),
  };
}

function maintenanceMetrics(registers: Registry[]) {
  return {
    reconciled: children(
      ['delivery', 'event'] as const,
      (kind) => ({ kind }),
      new Counter({
        name: 'runhook_reconciled_total',
        help: 'Jobs of pending items that the queue had lost and the reconciler added again, by kind.',
        labelNames: ['kind'] as const,
        registers,
      }),
    ),
    reconcilerLastRun: new Gauge({
      name: 'runhook_reconciler_last_run_timestamp_seconds',
      help: 'Time of the last run of the reconciler on this dispatcher; 0 if there was none.',
      registers,
    }),
    drainedWhenFull: children(
      ['event', 'retry'] as const,
      (kind) => ({ kind }),
      new Counter({
        name: 'runhook_full_queue_drained_total',
        help: 'Events processed without their job, and jobs of retries deleted, because the queue was full.',
        labelNames: ['kind'] as const,
        registers,
      }),
    ),
    deferredExpired: new Counter({
      name: 'runhook_deferred_expired_total',
      help: 'Deliveries that failed because they were deferred for a day.',
      registers,
    }),
    idle: new Gauge({
      name: 'runhook_dispatcher_idle',
      help: 'Whether this dispatcher takes no jobs, because its schema or encryption keys are incompatible.',
      registers,
    }),
    dayPartitionsDeferred: new Counter({
      name: 'runhook_day_partitions_deferred_total',
      help: 'Day partitions that could not be created or dropped because a session locks the log; counted each minute.',
      registers,
    }),
    quarantined: children(QUARANTINE_KINDS, (kind) => ({ kind }), registerQuarantined(registers)),
    ...auditMetrics(registers),
    recovered: new Counter({
      name: 'runhook_recovered_deliveries_total',
      help: 'Deliveries that recoveries queued again.',
      registers,
    }),
    jobErrors: children(
      [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES] as const,
      (queue) => ({ queue }),
      new Counter({
        name: 'runhook_job_errors_total',
        help: 'Internal errors of queue jobs, and rejected commits of results; both are retried.',
        labelNames: ['queue'] as const,
        registers,
      }),
    ),
    stalledJobs: children(
      [JOB_RUN_EVENTS, WEBHOOK_DELIVERIES] as const,
      (queue) => ({ queue }),
      new Counter({
        name: 'runhook_stalled_jobs_total',
        help: 'Queue jobs that were queued again because their worker did not renew the lock.',
        labelNames: ['queue'] as const,
        registers,
      }),
    ),
  };
}

const AUDITED_KINDS = ['delivery', 'event'] as const;

function auditMetrics(registers: Registry[]) {
  const byKind = (name: string, help: string) =>
    children(
      AUDITED_KINDS,
      (kind) => ({ kind }),
      new Counter({ name, help, labelNames: ['kind'] as const, registers }),
    );
  return {
    /** Items without a job or lane in the last audit of this process. */
    orphaned: {
      delivery: new Gauge({
        name: 'runhook_orphaned_deliveries',
        help: 'Pending deliveries without a job or lane in the last audit; a lane without its job counts as one.',
        registers,
      }),
      event: new Gauge({
        name: 'runhook_orphaned_events',
        help: 'Undispatched events without a job in the last audit.',
        registers,
      }),
    },
    audited: byKind('runhook_audited_total', 'Items that the audit has checked, by kind.'),
    auditRepaired: byKind(
      'runhook_audit_repaired_total',
      'Items without a job or lane that the audit queued again or set aside, by kind.',
    ),
  };
}

/** Creates one counter for each value of a label. They are retained, so that counting allocates nothing, and start at 0. */
function children<Value extends string, Label extends string>(
  values: readonly Value[],
  labelsOf: (value: Value) => Record<Label, Value>,
  counter: Counter<Label>,
): Record<Value, Counter.Internal> {
  const counters = values.map((value) => {
    const child = counter.labels(labelsOf(value));
    child.inc(0);
    return [value, child] as const;
  });
  return Object.fromEntries(counters) as Record<Value, Counter.Internal>;
}
