import {
  createSecretBox,
  type Database,
  ensureDayPartitions,
  isDatabaseUnavailable,
  openDatabase,
} from '@runhook/database';
import { createEgress } from '@runhook/egress';
import {
  createQueueBackend,
  openDeliveryQueue,
  openEventQueue,
  type QueuedDelivery,
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
  startProbeServer,
} from '@runhook/runtime';
import type { Registry } from 'prom-client';
import { createAttemptLog } from './attempt-log.ts';
import { openRecord } from './data/open-record.ts';
import { type SubscriptionStatus, updateSubscriptionStatuses } from './data/update-subscription-statuses.ts';
import { deliver } from './deliver.ts';
import { createEndpointShares } from './endpoint-shares.ts';
import { fanOut } from './fan-out.ts';
import { createDispatcherMetrics } from './metrics.ts';
import { createMicroBatcher } from './micro-batcher.ts';
import { createPatience, type Patience, StoppingError } from './patience.ts';
import { createSecretReader } from './secret-reader.ts';
import type { DispatcherSettings } from './settings.ts';
import { createStatusCoalescer } from './status-coalescer.ts';
import { upkeepTasks } from './upkeep/tasks.ts';
import { startDeliveryWorker, startEventWorker, type WorkerDependencies } from './worker.ts';

const DATABASE_CONNECTIONS = 10;
const STATUS_PERIOD_MS = 500;
const ENQUEUE_BATCH_MAX = 500;
const ENQUEUE_SLOTS = 2;
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
  const process: Process = {
    settings,
    lifecycle,
    logger,
    patience,
    health: createHealth({ lifecycle, logger }),
  };

  const registry = createMetricsRegistry({ service: 'dispatcher' });
  const metrics = createDispatcherMetrics(registry);
  const port = await openProbes(process, registry);
  const database = await openDispatchDatabase(process);
  const { backend, enqueue, eventQueue, deliveryQueue } = await openQueues(process);
  const egress = createEgress({
    allowCidrs: settings.egressAllowCidrs,
    timeoutMs: settings.deliveryTimeoutMs,
  });
  lifecycle.onClose('egress', () => egress.close());
  const noteStatus = openStatuses(process, database);

  const record = openRecord(database, patience);
  const shared = {
    ...record,
    egress,
    metrics,
    enqueue,
    readSecret: createSecretReader(createSecretBox(settings.encryptionKeys)),
    retryPolicy: { retriesMax: settings.deliveryMaxRetries, baseDelayMs: settings.retryBaseDelayMs },
    shares: createEndpointShares(),
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
  openWorkers(process, stopping, {
    backend,
    metrics,
    logger,
    concurrency: settings.deliveryConcurrency,
    retentionDays: settings.logRetentionDays,
    fanOut: fanOut.bind(null, shared),
    deliver: deliver.bind(null, shared),
  });
  return { port };
}

/** What every part of the process is opened with. */
interface Process {
  settings: DispatcherSettings;
  lifecycle: Lifecycle;
  logger: Logger;
  patience: Patience;
  health: Health;
}

async function openProbes({ settings, lifecycle, health }: Process, registry: Registry): Promise<number> {
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
}: Process): Promise<Database> {
  const database = openDatabase({
    url: settings.databaseUrl,
    connectionsMax: DATABASE_CONNECTIONS,
    onConnectionError: (error) => logger.warn({ err: error }, 'database connection lost'),
  });
  lifecycle.onClose('database', () => database.close());
  health.register('database', 'ready', async () => void (await database.pool.query('SELECT 1')));
  // At start too: whatever else waits, the days to come must have their partitions.
  await patience(() => ensureDayPartitions(database.pool));
  return database;
}

async function openQueues({ settings, lifecycle, logger, patience, health }: Process) {
  const backend = createQueueBackend(settings.queueUrl);
  const deliveryQueue = openDeliveryQueue(backend, (error) => logger.warn({ err: error }, 'queue error'));
  lifecycle.onClose('delivery queue', () => deliveryQueue.close());
  const eventQueue = openEventQueue(backend, (error) => logger.warn({ err: error }, 'queue error'));
  lifecycle.onClose('event queue', () => eventQueue.close());
  health.register('queue', 'ready', async () => void (await deliveryQueue.counts()));
  // BullMQ remembers a first connection that failed for ever: workers are made when the queue is there.
  await patience(() => deliveryQueue.counts());
  const enqueues = createMicroBatcher<QueuedDelivery, void>({
    run: async (deliveries) => {
      await patience(() => deliveryQueue.add(deliveries));
      return deliveries.map(() => undefined);
    },
    sizeMax: ENQUEUE_BATCH_MAX,
    slots: ENQUEUE_SLOTS,
    mayBeItemFault: (error) => !(error instanceof StoppingError),
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
  { settings, lifecycle, health }: Process,
  stopping: AbortController,
  dependencies: WorkerDependencies,
): void {
  const workers = [startEventWorker(dependencies), startDeliveryWorker(dependencies)];
  const close = async () => {
    stopping.abort();
    await Promise.all(workers.map((worker) => worker.close()));
  };
  lifecycle.onClose('workers', close, { timeoutMs: settings.deliveryTimeoutMs + DRAIN_MARGIN_MS });
  health.register('workers', 'live', () => {
    const stopped = workers.filter((worker) => !worker.isRunning());
    if (stopped.length > 0) throw new Error(`not running: ${stopped.map(({ name }) => name).join(', ')}`);
  });
}
