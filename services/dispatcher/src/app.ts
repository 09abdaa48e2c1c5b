import {
  createSecretBox,
  type Database,
  ensureDayPartitions,
  isDatabaseUnavailable,
  openDatabase,
  requireSchema,
} from '@runhook/database';
import { createEgress } from '@runhook/egress';
import {
  createQueueBackend,
  openDeliveryQueue,
  openEventQueue,
  openQueueTelemetry,
  type QueuedDelivery,
  type QueueTelemetry,
  QueueUnavailableError,
  startUpkeep,
} from '@runhook/queue';
import {
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
import { createAttemptLog } from './attempt.ts';
import { deliver } from './deliver.ts';
import { fanOut } from './fan-out.ts';
import { createEndpointShares } from './policy/endpoint-limits.ts';
import { createRoom } from './policy/semaphore.ts';
import { createSecretReader, createSubscriptionCache } from './record/accounts.ts';
import { type SubscriptionStatus, updateSubscriptionStatuses } from './record/attempts.ts';
import { createMicroBatcher, createStatusCoalescer } from './record/batcher.ts';
import { createPatience, openRecord, type Patience, StoppingError } from './record/open-record.ts';
import type { DispatcherSettings } from './settings.ts';
import { createBacklogMeasure } from './telemetry/backlog.ts';
import { createDispatcherMetrics, type DispatcherMetrics } from './telemetry/metrics.ts';
import { createSpans, type Spans } from './telemetry/spans.ts';
import { watchWorkers } from './telemetry/worker-liveness.ts';
import { upkeepTasks } from './upkeep/tasks.ts';
import {
  type StartedWorker,
  startDeliveryWorker,
  startEventWorker,
  type WorkerDependencies,
} from './worker.ts';

const DATABASE_CONNECTIONS = 10;
const STATUS_PERIOD_MS = 500;
const ENQUEUE_BATCH_MAX = 500;
const ENQUEUE_SLOTS = 2;
const ENQUEUE_SPACING_MS = 5;
/** An event has many deliveries, or a far-away endpoint: attempts in flight are bounded over all event jobs. */
const IN_PLACE_PER_JOB = 4;
/** About a kilobyte each. */
const CACHED_SUBSCRIPTIONS_MAX = 50_000;
const BACKLOG_EVERY_MS = 5_000;
/** A collector that is away must not hold up a stop. */
const TRACES_FLUSH_MS = 3_000;
/** What an attempt in flight may need beyond its own deadline, to be recorded. */
const DRAIN_MARGIN_MS = 5_000;
/** How far beyond an attempt's deadline a delivery must be overdue before its queue job is looked for. */
const RECONCILE_MARGIN_MS = 5_000;

/**
 * Opens what the dispatcher needs, in order, and registers each closer: `lifecycle.close()` undoes it in reverse.
 * Waits for a database or a queue that is not there yet; the probes answer meanwhile.
 */
export async function startDispatcher(
  settings: DispatcherSettings,
  lifecycle: Lifecycle,
  logger: Logger,
): Promise<{ port: number }> {
  const stopping = new AbortController();
  lifecycle.onClose('waits', () => stopping.abort());
  const patience = createPatience({
    isUnavailable: (error) => isDatabaseUnavailable(error) || error instanceof QueueUnavailableError,
    signal: stopping.signal,
    onWait: (error) => logger.warn({ err: error }, 'waiting for the database or the queue'),
  });
  const registry = createMetricsRegistry({ service: 'dispatcher' });
  const metrics = createDispatcherMetrics(registry);
  const traces = await openTraces('dispatcher', logger);
  if (traces) lifecycle.onClose('traces', () => traces.close(), { timeoutMs: TRACES_FLUSH_MS });
  const telemetry = traces ? await openQueueTelemetry() : undefined;
  const spans = traces && createSpans(traces, { toEndpoints: settings.tracePropagateToEndpoints ?? false });
  const process: Process = {
    settings,
    lifecycle,
    logger,
    patience,
    health: createHealth({ lifecycle, logger }),
    registry,
    metrics,
    telemetry,
    spans,
  };

  let isStarted = false;
  process.health.register('start', 'ready', () => {
    if (!isStarted)
      throw Object.assign(new Error('waits for the database or the queue'), { code: 'STARTING' });
  });
  const port = await openProbes(process);
  const database = await openDispatchDatabase(process);
  const { backend, enqueue, eventQueue, deliveryQueue } = await openQueues(process);
  const egress = createEgress({
    allowCidrs: settings.egressAllowCidrs,
    timeoutMs: settings.deliveryTimeoutMs,
  });
  lifecycle.onClose('egress', () => egress.close());
  const noteStatus = openStatuses(process, database);

  const record = openRecord(database, patience, metrics.batchSize);
  const shared = {
    ...record,
    accounts: createSubscriptionCache({ load: record.loadAccount, sizeMax: CACHED_SUBSCRIPTIONS_MAX }),
    egress,
    metrics,
    inFlight: metrics.inFlight,
    spans,
    enqueue,
    readSecret: createSecretReader(createSecretBox(settings.encryptionKeys)),
    retryPolicy: { retriesMax: settings.deliveryMaxRetries, baseDelayMs: settings.retryBaseDelayMs },
    room: createRoom(settings.deliveryConcurrency * IN_PLACE_PER_JOB),
    shares: createEndpointShares({ concurrency: settings.deliveryConcurrency }),
    attemptLog: createAttemptLog({ commit: record.recordAttempt, noteStatus, metrics, logger }),
  };
  const upkeep = startUpkeep(
    backend,
    upkeepTasks({
      pool: database.pool,
      events: eventQueue,
      deliveries: deliveryQueue,
      retryPolicy: shared.retryPolicy,
      graceMs: settings.deliveryTimeoutMs + RECONCILE_MARGIN_MS,
      retentionDays: settings.logRetentionDays,
      metrics,
      logger,
    }),
    (error) => logger.warn({ err: error }, 'upkeep has trouble'),
  );
  lifecycle.onClose('upkeep', () => upkeep.close());
  const backlog = createBacklogMeasure({
    pool: database.pool,
    events: eventQueue,
    deliveries: deliveryQueue,
    dependencies: registerDependencyMetrics(registry),
    registry,
  });
  const measuring = startPeriodic(BACKLOG_EVERY_MS, backlog, (error) =>
    logger.warn({ err: error }, 'the backlog could not be measured'),
  );
  lifecycle.onClose('backlog', () => void measuring.stop());
  const { events, deliveries } = openWorkers(process, stopping, {
    backend,
    metrics,
    logger,
    concurrency: settings.deliveryConcurrency,
    retentionDays: settings.logRetentionDays,
    telemetry,
    fanOut: spans
      ? (event, interrupted) => spans.fanOut(event, () => fanOut(shared, event, interrupted))
      : fanOut.bind(null, shared),
    deliver: spans ? (job) => spans.again(job, () => deliver(shared, job)) : deliver.bind(null, shared),
  });
  const watched = [
    { ...events, firstInLine: eventQueue.firstInLine },
    { ...deliveries, firstInLine: deliveryQueue.firstInLine },
  ];
  watchWorkers(process, watched, upkeep.worker, settings.deliveryConcurrency);
  isStarted = true;
  return { port };
}

/** What every part of the process is opened with. */
interface Process {
  settings: DispatcherSettings;
  lifecycle: Lifecycle;
  logger: Logger;
  patience: Patience;
  health: Health;
  registry: Registry;
  metrics: DispatcherMetrics;
  telemetry: QueueTelemetry | undefined;
  spans: Spans | null;
}

async function openProbes({ settings, lifecycle, health, registry }: Process): Promise<number> {
  const { port, host } = settings;
  const probes = await startProbeServer({ port, host, probes: createHttpProbes({ health, registry }) });
  lifecycle.onClose('probes', () => probes.close());
  return probes.port;
}

async function openDispatchDatabase({
  settings,
  lifecycle,
  logger,
  patience,
  health,
  registry,
}: Process): Promise<Database> {
  const database = openDatabase({
    url: settings.databaseUrl,
    connectionsMax: DATABASE_CONNECTIONS,
    plansByIndex: true,
    onConnectionError: (error) => logger.warn({ err: error }, 'database connection lost'),
  });
  lifecycle.onClose('database', () => database.close());
  registerPoolMetrics(registry, database.pool);
  // Asks the database, too.
  health.register('database', 'ready', () => requireSchema(database.pool));
  // At start too: whatever else waits, the days to come must have their partitions.
  await patience(() => ensureDayPartitions(database.pool));
  return database;
}

async function openQueues(process: Process) {
  const { settings, lifecycle, logger, patience, health, metrics, spans } = process;
  const backend = createQueueBackend(settings.queueUrl);
  const onError = (error: Error) => logger.warn({ err: error }, 'queue error');
  const telemetry = async () => process.telemetry;
  const deliveryQueue = openDeliveryQueue(backend, onError, telemetry);
  lifecycle.onClose('delivery queue', () => deliveryQueue.close());
  const eventQueue = openEventQueue(backend, onError, telemetry);
  lifecycle.onClose('event queue', () => eventQueue.close());
  health.register('queue', 'ready', async () => void (await deliveryQueue.counts()));
  // BullMQ remembers a first connection that failed for ever: workers are made when the queue is there.
  await patience(() => deliveryQueue.counts());
  const enqueues = createMicroBatcher<QueuedDelivery, void>({
    run: async (deliveries) => {
      const add = () => patience(() => deliveryQueue.add(deliveries));
      await (spans ? spans.detached(add) : add());
      return deliveries.map(() => undefined);
    },
    sizeMax: ENQUEUE_BATCH_MAX,
    slots: ENQUEUE_SLOTS,
    spacingMs: ENQUEUE_SPACING_MS,
    mayBeItemFault: (error) => !(error instanceof StoppingError),
    onBatch: metrics.batchSize.enqueue,
  });
  return { backend, eventQueue, deliveryQueue, enqueue: enqueues.add };
}

function openStatuses(
  { lifecycle, logger }: Process,
  database: Database,
): (status: SubscriptionStatus) => void {
  const statuses = createStatusCoalescer({
    write: (batch) => updateSubscriptionStatuses(database.pool, batch),
    periodMs: STATUS_PERIOD_MS,
    onError: (error) => logger.warn({ err: error }, 'subscription statuses wait for the next period'),
  });
  lifecycle.onClose('subscription statuses', () => statuses.close());
  return statuses.note;
}

/** What is in flight at a stop ends within its own deadline; what waits for a database that is away gives up. */
function openWorkers(
  { settings, lifecycle }: Process,
  stopping: AbortController,
  dependencies: WorkerDependencies,
): { events: StartedWorker; deliveries: StartedWorker } {
  const events = startEventWorker(dependencies);
  const deliveries = startDeliveryWorker(dependencies);
  const close = async () => {
    stopping.abort();
    await Promise.all([events.worker.close(), deliveries.worker.close()]);
  };
  lifecycle.onClose('workers', close, { timeoutMs: settings.deliveryTimeoutMs + DRAIN_MARGIN_MS });
  return { events, deliveries };
}
