import { createSecretBox, ensureDayPartitions, isDatabaseUnavailable, openDatabase } from '@runhook/database';
import { createEgress } from '@runhook/egress';
import {
  createQueueBackend,
  openDeliveryQueue,
  openEventQueue,
  type QueuedDelivery,
  QueueUnavailableError,
} from '@runhook/queue';
import {
  createHealth,
  createHttpProbes,
  createMetricsRegistry,
  type Lifecycle,
  type Logger,
  startProbeServer,
} from '@runhook/runtime';
import { createAttemptLog } from './attempt-log.ts';
import { openRecord } from './data/open-record.ts';
import { updateSubscriptionStatuses } from './data/update-subscription-statuses.ts';
import { deliver } from './deliver.ts';
import { createEndpointShares } from './endpoint-shares.ts';
import { fanOut } from './fan-out.ts';
import { createDispatcherMetrics } from './metrics.ts';
import { createMicroBatcher } from './micro-batcher.ts';
import { createPatience, StoppingError } from './patience.ts';
import { createSecretReader } from './secret-reader.ts';
import type { DispatcherSettings } from './settings.ts';
import { createStatusCoalescer } from './status-coalescer.ts';
import { startDeliveryWorker, startEventWorker } from './worker.ts';

const DATABASE_CONNECTIONS = 10;
const STATUS_PERIOD_MS = 500;
const PARTITION_PERIOD_MS = 3_600_000;
const ENQUEUE_BATCH_MAX = 500;
const ENQUEUE_SLOTS = 2;

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
  const health = createHealth({ lifecycle, logger });
  const registry = createMetricsRegistry({ service: 'dispatcher' });
  const metrics = createDispatcherMetrics(registry);
  const probes = await startProbeServer({
    port: settings.port,
    host: settings.host,
    probes: createHttpProbes({ health, registry }),
  });
  lifecycle.onClose('probes', () => probes.close());

  const patience = createPatience({
    isUnavailable: (error) => isDatabaseUnavailable(error) || error instanceof QueueUnavailableError,
    signal: stopping.signal,
    onWait: (error) => logger.warn({ err: error }, 'waiting for the database or the queue'),
  });
  const database = openDatabase({
    url: settings.databaseUrl,
    connectionsMax: DATABASE_CONNECTIONS,
    onConnectionError: (error) => logger.warn({ err: error }, 'database connection lost'),
  });
  lifecycle.onClose('database', () => database.close());
  health.register('database', 'ready', async () => void (await database.pool.query('SELECT 1')));
  await patience(() => ensureDayPartitions(database.pool));
  const partitionTimer = setInterval(() => {
    ensureDayPartitions(database.pool).catch((error) =>
      logger.warn({ err: error }, 'day partitions were not made'),
    );
  }, PARTITION_PERIOD_MS);
  lifecycle.onClose('partition timer', () => clearInterval(partitionTimer));

  const backend = createQueueBackend(settings.queueUrl);
  const queueError = (error: Error) => logger.warn({ err: error }, 'queue error');
  const eventQueue = openEventQueue(backend, queueError);
  const deliveryQueue = openDeliveryQueue(backend, queueError);
  lifecycle.onClose(
    'queues',
    async () => void (await Promise.all([eventQueue.close(), deliveryQueue.close()])),
  );
  health.register('queue', 'ready', async () => void (await deliveryQueue.counts()));
  await patience(() => Promise.all([eventQueue.counts(), deliveryQueue.counts()]));
  const enqueues = createMicroBatcher<QueuedDelivery, void>({
    run: async (deliveries) => {
      await patience(() => deliveryQueue.add(deliveries));
      return deliveries.map(() => undefined);
    },
    sizeMax: ENQUEUE_BATCH_MAX,
    slots: ENQUEUE_SLOTS,
    mayBeItemFault: (error) => !(error instanceof StoppingError),
  });

  const egress = createEgress({
    allowCidrs: settings.egressAllowCidrs,
    timeoutMs: settings.deliveryTimeoutMs,
  });
  lifecycle.onClose('egress', () => egress.close());
  const statuses = createStatusCoalescer({
    write: (batch) => updateSubscriptionStatuses(database.pool, batch),
    periodMs: STATUS_PERIOD_MS,
    onError: (error) => logger.warn({ err: error }, 'subscription statuses wait for the next period'),
  });
  lifecycle.onClose('subscription statuses', () => statuses.close());

  const record = openRecord(database, patience);
  const shared = {
    ...record,
    egress,
    metrics,
    readSecret: createSecretReader(createSecretBox(settings.encryptionKeys)),
    retryPolicy: { retriesMax: settings.deliveryMaxRetries, baseDelayMs: settings.retryBaseDelayMs },
    enqueue: enqueues.add,
    shares: createEndpointShares(),
    attemptLog: createAttemptLog({
      commit: record.recordAttempt,
      noteStatus: statuses.note,
      metrics,
      logger,
    }),
  };
  const workerDependencies = {
    backend,
    metrics,
    logger,
    concurrency: settings.deliveryConcurrency,
    retentionDays: settings.logRetentionDays,
    fanOut: fanOut.bind(null, shared),
    deliver: deliver.bind(null, shared),
  };
  const workers = [startEventWorker(workerDependencies), startDeliveryWorker(workerDependencies)];
  // What is in flight ends within its own deadline; what waits for a database or queue that is away gives up.
  lifecycle.onClose(
    'workers',
    async () => {
      stopping.abort();
      await Promise.all(workers.map((worker) => worker.close()));
    },
    { timeoutMs: settings.deliveryTimeoutMs + 5_000 },
  );
  health.register('workers', 'live', () => {
    const stopped = workers.filter((worker) => !worker.isRunning());
    if (stopped.length > 0) throw new Error(`not running: ${stopped.map(({ name }) => name).join(', ')}`);
  });
  return { port: probes.port };
}
