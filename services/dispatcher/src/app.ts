import { setMaxListeners } from 'node:events';
import { openArtifactStore } from '@runhook/artifacts';
import {
  type Database,
  ensureDayPartitions,
  openDatabase,
  requireKeys,
  requirePreparedStatements,
  requireSchema,
} from '@runhook/database';
import {
  createQueueBackend,
  type DeliveryQueue,
  ENQUEUE_WINDOW_MS,
  type EventQueue,
  type Maintenance,
  openDeliveryQueue,
  openEventQueue,
  openQueueTelemetry,
  openRunRequestQueue,
  openShardAdmin,
  type QueueBackend,
  type QueueTelemetry,
  type RunRequestQueue,
  requireNoEviction,
  type ShardAdmin,
  startMaintenance,
} from '@runhook/queue';
import {
  addLogFields,
  type Clock,
  createHealth,
  createHttpProbes,
  createMetricsRegistry,
  type Health,
  type Lifecycle,
  type Logger,
  openTraces,
  registerDependencyMetrics,
  registerPoolMetrics,
  startPeriodic,
  startProbeServer,
} from '@runhook/runtime';
import type { Registry } from 'prom-client';
import { type CompatibilityCheck, openCompatibilityCheck, warnAboutLockCapacity } from './compatibility.ts';
import { openDatabaseClock } from './database-clock.ts';
import { type Dispatcher, openDispatcher } from './dispatcher.ts';
import { processEvents } from './event-job.ts';
import { FullQueue } from './maintenance/full-queue.ts';
import { startMail } from './maintenance/notices.ts';
import { maintenanceTasks } from './maintenance/tasks.ts';
import { loadPublishFunction } from './publish-function.ts';
import { Quarantine, withDeliveryQuarantine, withEventQuarantine } from './record/quarantine.ts';
import { retryWhileUnavailable } from './record/retry-while-unavailable.ts';
import type { DispatcherSettings } from './settings.ts';
import { applyShardCount, followShards } from './shards.ts';
import { createBacklogMeasure } from './telemetry/backlog.ts';
import { createForeignPublishersMeasure } from './telemetry/foreign-publishers.ts';
import { createDispatcherMetrics, type DispatcherMetrics } from './telemetry/metrics.ts';
import { watchWrites } from './telemetry/record-writes.ts';
import { createSpans, noSpans, type Spans } from './telemetry/spans.ts';
import { watchWorkers } from './telemetry/worker-liveness.ts';
import { startDeliveryWorkers, startEventWorkers } from './worker.ts';

const DATABASE_CONNECTIONS = 10;
const BACKLOG_EVERY_MS = 5_000;
const FOREIGN_PUBLISHERS_EVERY_MS = 15_000;

/** Maximum delay of a stop by an unavailable collector of traces. */
const TRACES_FLUSH_MS = 3_000;
/** Maximum time beyond the deadline of an attempt that a stop waits for the workers to close. */
const DRAIN_MARGIN_MS = 10_000;
/** Time beyond the deadline of an attempt after which a stop abandons unrecorded results and returns their jobs. */
const RECORD_MARGIN_MS = 9_000;
/** Time beyond an attempt's deadline after which the reconciler searches for the job of an overdue delivery. */
const RECONCILE_MARGIN_MS = 5_000;

/**
 * Opens the dependencies of the dispatcher in order and registers a closer for each; `lifecycle.close()` runs the
 * closers in reverse. Waits while the database or the queue is unavailable; the probes respond meanwhile.
 */
export async function startDispatcher(
  settings: DispatcherSettings,
  lifecycle: Lifecycle,
  logger: Logger,
): Promise<{ port: number }> {
  const process = await openProcess(settings, lifecycle, logger);
  let isStarted = false;
  process.health.register('start', 'ready', () => {
    if (isStarted) return;
    throw Object.assign(new Error('waits for the database or the queue'), { code: 'STARTING' });
  });
  const port = await openProbes(process);
  const database = openDispatchDatabase(process);
  const compatibility = await awaitCompatibility(process, database);
  const clock = await openDatabaseClock(process, database);
  const quarantine = new Quarantine({ ...process, pool: database.pool });
  const queues = await openQueues(process, clock, quarantine);
  const dispatcher = openDispatcher({
    ...process,
    database,
    writes: watchWrites(process, database),
    clock,
    deliveryQueue: queues.deliveries,
    quarantine,
  });
  const maintenance = openMaintenance(process, database, queues, dispatcher);
  await startMail(process, database.pool, quarantine);
  openBacklog(process, database, queues);
  loadPublishFunction(process, queues.events);
  openWorkers(process, queues, dispatcher, maintenance, compatibility);
  isStarted = true;
  return { port };
}

/** Dependencies of every part of the process. */
interface Process {
  settings: DispatcherSettings;
  lifecycle: Lifecycle;
  logger: Logger;
  /** Aborted before the workers close: ends the waits for database or queue; jobs then plan no more requests. */
  stop: AbortController;
  stopping: AbortSignal;
  /** Aborted when a stop runs out of time: results of attempts that the database does not accept are abandoned. */
  drain: AbortController;
  drainEnd: AbortSignal;
  health: Health;
  registry: Registry;
  metrics: DispatcherMetrics;
  telemetry: QueueTelemetry | undefined;
  spans: Spans;
}

async function openProcess(
  settings: DispatcherSettings,
  lifecycle: Lifecycle,
  logger: Logger,
): Promise<Process> {
  const stop = new AbortController();
  // Every wait for the database or the queue listens to this signal.
  setMaxListeners(0, stop.signal);
  const drain = new AbortController();
  setMaxListeners(0, drain.signal);
  lifecycle.onClose('waits', () => {
    stop.abort();
    drain.abort();
  });
  const registry = createMetricsRegistry({ service: 'dispatcher' });
  const traces = await openTraces('dispatcher', logger);
  if (traces) addLogFields(logger, traces.ids);
  if (traces) lifecycle.onClose('traces', () => traces.close(), { timeoutMs: TRACES_FLUSH_MS });
  const toEndpoints = settings.tracePropagateToEndpoints ?? false;
  return {
    settings,
    lifecycle,
    logger,
    stop,
    stopping: stop.signal,
    drain,
    drainEnd: drain.signal,
    health: createHealth({ lifecycle, logger }),
    registry,
    metrics: createDispatcherMetrics(registry),
    telemetry: traces ? await openQueueTelemetry() : undefined,
    spans: traces ? createSpans(traces, { toEndpoints }) : noSpans,
  };
}

async function openProbes({ settings, lifecycle, health, registry }: Process): Promise<number> {
  const { port, host } = settings;
  const probes = await startProbeServer({ port, host, probes: createHttpProbes({ health, registry }) });
  lifecycle.onClose('probes', () => probes.close());
  return probes.port;
}

function openDispatchDatabase(process: Process): Database {
  const { settings, lifecycle, logger, health, registry } = process;
  const database = openDatabase({
    url: settings.databaseUrl,
    connectionsMax: DATABASE_CONNECTIONS,
    onConnectionError: (err) => logger.warn({ err }, 'idle database connection broke; the pool replaces it'),
  });
  lifecycle.onClose('database', () => database.close());
  registerPoolMetrics(registry, database.pool);
  // The check also queries the database.
  health.register('database', 'ready', () => requireSchema(database.pool));
  return database;
}

/** Waits until schema and encryption keys are compatible, because jobs that a dispatcher takes before would fail. */
async function awaitCompatibility(process: Process, { pool }: Database): Promise<CompatibilityCheck> {
  const { settings, logger, metrics } = process;
  let reportedUnknown = '';
  const check = async () => {
    await requireSchema(pool);
    const unknown = (await requireKeys(pool, settings.encryptionKeys)).unknown.join(', ');
    if (unknown !== reportedUnknown && unknown !== '')
      logger.warn({ unknown }, 'secrets are encrypted with unknown keys');
    reportedUnknown = unknown;
  };
  await retryWhileUnavailable(process, () => requirePreparedStatements({ url: settings.databaseUrl }));
  const compatibility = openCompatibilityCheck({ ...process, check, idle: metrics.idle });
  await retryWhileUnavailable(process, () => compatibility.waitUntilCompatible());
  // Runs at start too, because the next days need their partitions even if later steps wait.
  await retryWhileUnavailable(process, () => ensureDayPartitions(pool));
  await warnAboutLockCapacity(process, pool);
  return compatibility;
}

interface Queues {
  backend: QueueBackend;
  events: EventQueue;
  deliveries: DeliveryQueue;
  runRequests: RunRequestQueue;
  shards: ShardAdmin;
}

async function openQueues(process: Process, clock: Clock, quarantine: Quarantine): Promise<Queues> {
  const { settings, lifecycle, logger, health } = process;
  const backend = createQueueBackend(settings.queueUrl, { clock });
  const onError = (error: Error) => logger.warn({ err: error }, 'queue connection error');
  const telemetry = async () => process.telemetry;
  const deliveries = withDeliveryQuarantine(openDeliveryQueue(backend, onError, telemetry), quarantine);
  lifecycle.onClose('delivery queue', () => deliveries.close());
  const events = withEventQuarantine(openEventQueue(backend, onError, telemetry), quarantine);
  lifecycle.onClose('event queue', () => events.close());
  const runRequests = openRunRequestQueue(backend, onError);
  lifecycle.onClose('queue of run requests', () => runRequests.close());
  health.register('queue', 'ready', () => requireNoEviction(deliveries));
  // BullMQ caches a failure of its first connection forever, so workers are created once the queue is available.
  await retryWhileUnavailable(process, () => deliveries.counts());
  const shards = openShardAdmin(backend, onError);
  lifecycle.onClose('shards', () => shards.close());
  await retryWhileUnavailable(process, () => applyShardCount(process, shards));
  return { backend, events, deliveries, runRequests, shards };
}

function openMaintenance(
  { settings, lifecycle, stopping, metrics, logger }: Process,
  { pool }: Database,
  { backend, events, deliveries, runRequests, shards }: Queues,
  { retryPolicy, pendingMax, quarantine }: Dispatcher,
): Maintenance {
  const graceMs = settings.deliveryTimeoutMs + RECONCILE_MARGIN_MS;
  const { deactivateAfterFailures, deactivateAfterDays } = settings;
  const { logRetentionDays, runRetentionDays, artifactRetentionDays } = settings;
  const retention = { logRetentionDays, runRetentionDays, artifactRetentionDays };
  const artifactStore = openArtifactStore({
    location: settings.artifactsUrl,
    database: pool,
    s3: { endpoint: settings.artifactsS3Endpoint, region: settings.artifactsS3Region },
  });
  lifecycle.onClose('artifact store', () => artifactStore.close());
  const shouldNotifyAdmins = settings.smtpUrl !== undefined;
  const dependencies = {
    pool,
    artifactStore,
    events,
    deliveries,
    runRequests,
    shards,
    quarantine,
    retryPolicy,
    pendingMax,
    graceMs,
    eventGraceMs: ENQUEUE_WINDOW_MS,
    ...retention,
    shouldNotifyAdmins,
    deactivateAfterFailures,
    deactivateAfterDays,
    stopping,
    metrics,
    logger,
  };
  const maintenance = startMaintenance(backend, maintenanceTasks(dependencies), (err, task) => {
    if (task === null) logger.warn({ err }, 'error of the queue of maintenance tasks');
    else logger.warn({ err, task }, 'maintenance task failed');
  });
  lifecycle.onClose('maintenance', () => maintenance.close());
  return maintenance;
}

function openBacklog({ lifecycle, logger, registry }: Process, { pool }: Database, queues: Queues): void {
  const dependencies = registerDependencyMetrics(registry);
  const { events, deliveries, backend } = queues;
  const nowMs = () => backend.clock.nowMs();
  const measure = createBacklogMeasure({ pool, events, deliveries, dependencies, registry, nowMs });
  const measuringBacklog = startPeriodic(BACKLOG_EVERY_MS, measure, (error) =>
    logger.warn({ err: error }, 'the backlog could not be measured'),
  );
  lifecycle.onClose('backlog', () => void measuringBacklog.stop());
  const measureForeignPublishers = createForeignPublishersMeasure({ events, registry, logger });
  const measuringForeignPublishers = startPeriodic(
    FOREIGN_PUBLISHERS_EVERY_MS,
    measureForeignPublishers,
    (error) =>
      logger.warn(
        { err: error },
        'the check for publishers with another queue prefix or BullMQ version failed',
      ),
  );
  lifecycle.onClose('foreign publishers', () => void measuringForeignPublishers.stop());
}

/**
 * An attempt that is in flight at a stop ends within its deadline, and its result is recorded, because a request whose
 * result is abandoned is sent again. Work that has sent nothing is left to another dispatcher: at once if it waits for an
 * unavailable database, otherwise before it begins its requests.
 */
function openWorkers(
  process: Process,
  queues: Queues,
  dispatcher: Dispatcher,
  maintenance: Maintenance,
  compatibility: CompatibilityCheck,
): void {
  const { settings, lifecycle, stop, drain, telemetry } = process;
  const { deliveryConcurrency: concurrency, logRetentionDays: retentionDays } = settings;
  const fullQueue = new FullQueue({
    ...process,
    ...queues,
    // A full Redis cannot lock a job, so several dispatchers may process it. Its deliveries are committed before they
    // are attempted, as after an interruption of the job, so only the dispatcher that commits them attempts them.
    work: async (job) =>
      (await processEvents(dispatcher, { ...job, attemptsStarted: 2 }, retentionDays)).kind === 'done',
    onDrained: (kind, count) => process.metrics.drainedWhenFull[kind].inc(count),
  });
  const onFull = () => fullQueue.drainWhenFull();
  const options = {
    backend: queues.backend,
    concurrency,
    retentionDays,
    telemetry,
    onFull,
    served: settings.dispatcherShards,
  };
  const events = startEventWorkers(dispatcher, queues.events, options);
  const deliveries = startDeliveryWorkers(dispatcher, options);
  const close = async () => {
    stop.abort();
    const timer = setTimeout(() => drain.abort(), settings.deliveryTimeoutMs + RECORD_MARGIN_MS);
    await Promise.all([events.workers.close(), deliveries.workers.close(), fullQueue.close()]);
    clearTimeout(timer);
  };
  lifecycle.onClose('workers', close, { timeoutMs: settings.deliveryTimeoutMs + DRAIN_MARGIN_MS });
  followShards(process, queues.shards, [events.workers, deliveries.workers]);
  const watched = [
    { ...events, nextJobs: queues.events.nextJobs },
    { ...deliveries, nextJobs: queues.deliveries.nextJobs },
  ];
  watchWorkers(process, watched, maintenance.worker, concurrency);
  compatibility.watch([events.workers, deliveries.workers]);
}
