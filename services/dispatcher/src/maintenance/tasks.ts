import {
  type DayPartitionsPass,
  deleteOldUnpartitioned,
  dropOldDayPartitions,
  ensureDayPartitions,
  runEach,
} from '@runhook/database';
import type { MaintenanceTask, ShardAdmin } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { DispatcherMetrics } from '../telemetry/metrics.ts';
import { type ArtifactsOptions, artifactTasks } from './artifacts.ts';
import { type AuditDependencies, auditTask } from './audit.ts';
import { type HealthOptions, refreshHealth } from './health.ts';
import { type LanesDependencies, reconcileLanes } from './lanes.ts';
import { limitPending, type PendingLimitOptions } from './pending-limit.ts';
import { eraseOldSecrets, type PurgeOptions, purge, purgeJobs } from './purge.ts';
import { type ReconcileDependencies, reconcile } from './reconcile.ts';
import { type RecoverDependencies, recover } from './recover.ts';
import { type RunRequestDependencies, reconcileRunRequests } from './run-requests.ts';
import { auditSignInFailures } from './sign-in-failures.ts';

const RECONCILE_EVERY_MS = 10_000;
const LANES_EVERY_MS = 15_000;
/** Interval between two counts of deferred deliveries: those that an account adds meanwhile are not limited. */
const PENDING_LIMIT_EVERY_MS = 5_000;
/** Interval of the passes that offer runs again whose runner died, in addition to the duration of the lease. */
const RUN_REQUESTS_EVERY_MS = 5_000;
const RECOVER_EVERY_MS = 2_000;
/**
 * Interval between two passes over the day partitions: short, because partitions that a long reader blocks wait for the
 * next pass.
 */
const PARTITIONS_EVERY_MS = 60_000;
const HEALTH_EVERY_MS = 15_000;
const ROTATIONS_EVERY_MS = 60_000;
const SIGN_IN_FAILURES_EVERY_MS = 60_000;
const PURGE_EVERY_MS = 3_600_000;
const PURGE_JOBS_EVERY_MS = 86_400_000;
const SHARDS_EVERY_MS = 10_000;

type MaintenanceDependencies = ReconcileDependencies &
  AuditDependencies &
  LanesDependencies &
  RecoverDependencies &
  RunRequestDependencies &
  PendingLimitOptions &
  PurgeOptions &
  ArtifactsOptions &
  HealthOptions & { shards: Pick<ShardAdmin, 'reconcile'>; metrics: DispatcherMetrics; logger: Logger };

/**
 * Returns the scheduled tasks. One dispatcher takes each run; if a run takes longer than its period, another dispatcher
 * may begin the next one meanwhile.
 */
export function maintenanceTasks(dependencies: MaintenanceDependencies): MaintenanceTask[] {
  const { pool, logRetentionDays: retentionDays, stopping, metrics, logger } = dependencies;
  const reportDays = (action: 'made' | 'dropped', { changed, waiting }: DayPartitionsPass) => {
    metrics.dayPartitionsDeferred.inc(waiting.length);
    if (changed > 0)
      logger.info({ [action]: changed }, `day partitions ${action === 'made' ? 'created' : 'dropped'}`);
    if (waiting.length > 0) logger.warn({ waiting }, 'day partitions are waiting for a lock');
  };
  return [
    {
      name: 'reconcile',
      everyMs: RECONCILE_EVERY_MS,
      async run() {
        const found = await reconcile({
          ...dependencies,
          onRequeued(kind, count) {
            metrics.reconciled[kind].inc(count);
            metrics.reconcilerLastRun.setToCurrentTime();
          },
        });
        metrics.reconcilerLastRun.setToCurrentTime();
        const level = found.delivery + found.event > 0 ? 'warn' : 'debug';
        logger[level](found, 'reconciler pass completed: numbers of lost items that were queued again');
      },
    },
    {
      name: 'lanes',
      everyMs: LANES_EVERY_MS,
      async run() {
        await reconcileLanes({
          ...dependencies,
          onExpired(count) {
            metrics.deferredExpired.inc(count);
            metrics.completed.failed.inc(count);
            logger.warn({ expired: count }, 'deferred deliveries failed: not attempted for a day');
          },
        });
      },
    },
    {
      name: 'pending-limit',
      everyMs: PENDING_LIMIT_EVERY_MS,
      async run() {
        const result = await limitPending(dependencies);
        if (result.filled + result.reopened > 0)
          logger.warn(
            result,
            'limit of deferred deliveries per account: lanes were marked as full, or as no longer full',
          );
      },
    },
    auditTask(dependencies),
    {
      name: 'recover',
      everyMs: RECOVER_EVERY_MS,
      async run() {
        const errors: unknown[] = [];
        const result = await recover(dependencies, (error) => errors.push(error));
        metrics.recovered.inc(result.queuedDeliveries);
        if (result.queuedDeliveries + result.cancelledRecoveries > 0)
          logger.info(result, 'recovery pass: deliveries were queued again, or recoveries cancelled');
        if (errors.length > 0)
          throw new AggregateError(errors, `${errors.length} recoveries did not continue.`);
      },
    },
    {
      name: 'run-requests',
      everyMs: RUN_REQUESTS_EVERY_MS,
      async run() {
        const { queued } = await reconcileRunRequests(dependencies);
        if (queued > 0) logger.info({ queued }, 'triggered runs were added to the queue again');
      },
    },
    {
      name: 'partitions',
      everyMs: PARTITIONS_EVERY_MS,
      async run() {
        await runEach({
          make: async () => reportDays('made', await ensureDayPartitions(pool)),
          drop: async () => reportDays('dropped', await dropOldDayPartitions(pool, retentionDays)),
          deleteRows: () => deleteOldUnpartitioned(pool, retentionDays, { stopping }),
        });
      },
    },
    {
      name: 'health',
      everyMs: HEALTH_EVERY_MS,
      async run() {
        const result = await refreshHealth(pool, dependencies);
        if (result.deactivated + result.notifiedFailing + result.notifiedRecovered > 0)
          logger.info(result, 'subscriptions were deactivated, or reported to their admins');
      },
    },
    {
      name: 'rotations',
      everyMs: ROTATIONS_EVERY_MS,
      async run() {
        const erased = await eraseOldSecrets(pool, dependencies.quarantine);
        if (erased > 0) logger.info({ erased }, 'erased old secrets whose rotation has ended');
      },
    },
    {
      name: 'sign-in-failures',
      everyMs: SIGN_IN_FAILURES_EVERY_MS,
      async run() {
        await auditSignInFailures(pool, dependencies);
      },
    },
    {
      name: 'shards',
      everyMs: SHARDS_EVERY_MS,
      async run() {
        const reconciled = await dependencies.shards.reconcile();
        if (reconciled.dropped.length > 0)
          logger.info(reconciled, 'shards of the queue removed after they were drained');
        if (reconciled.found.length > 0)
          logger.warn(reconciled, 'jobs found in shards without workers: these are served again');
      },
    },
    {
      name: 'purge',
      everyMs: PURGE_EVERY_MS,
      async run() {
        await purge(pool, {
          ...dependencies,
          onPurged: (kind, count) => logger.info({ kind, count }, 'deleted rows whose retention is over'),
        });
      },
    },
    {
      name: 'purge-jobs',
      everyMs: PURGE_JOBS_EVERY_MS,
      async run() {
        const count = await purgeJobs(pool, dependencies);
        if (count > 0) logger.info({ kind: 'jobs', count }, 'deleted rows whose retention is over');
      },
    },
    ...artifactTasks(dependencies),
  ];
}
