import {
  type ConnectionProblem,
  connectionProblem,
  openDatabase,
  type Pool,
  readServerTimeMs,
  requirePreparedStatements,
  requireSchema,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { type Egress, egressRules, isForbidden } from '@runhook/egress';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
  openQueueTelemetry,
  type QueueBackendName,
  requireKeeping,
} from '@runhook/queue';
import {
  addToEachLine,
  type Clock,
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  describeSettings,
  Lifecycle,
  type Logger,
  type LoggerOptions,
  openServerClock,
  openTraces,
  registerBlockedAddresses,
  registerDependencyMetrics,
  registerPoolMetrics,
  startPeriodic,
  startProbeServer,
  type Traces,
  withinDeadline,
} from '@runhook/runtime';
import { findConsole } from './console-files/routes.ts';
import { createEndpoints } from './endpoints.ts';
import { openLaggingReads } from './http/lagging-reads.ts';
import { type LimitStore, openLimitStore } from './http/limits.ts';
import { listen, type Patience } from './http/listen.ts';
import { createHttpApp } from './http/server.ts';
import { createManagementMetrics, type ManagementMetrics, measureDependencies } from './metrics.ts';
import { openRecordWrites } from './record-writes.ts';
import { Relay } from './runs/relay.ts';
import { setAsideEvents } from './runs/set-aside.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';
import { ChangeStreams } from './subscriptions/changes.ts';

/** What the requests in flight may need beyond the longest of them, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;
const DEPENDENCIES_EVERY_MS = 5_000;
/** Reports that are recorded together, three batches at a time; and one of published events. */
const REPORT_CONNECTIONS = 4;
/** Less than a caller waits: what it is not refused for any more is on its way to be committed. */
const REPORT_TIMEOUT_MS = 5_000;
/** Of the first question to the database; a service that starts waits no longer for it. */
const LOGIN_TIMEOUT_MS = 3_000;
/** A collector that is away must not hold up a stop. */
const TRACES_FLUSH_MS = 3_000;

/**
 * How long the service waits for what it needs, before a caller gets a 503 or another way is taken. What is omitted is
 * as the package or file that waits has it.
 */
export interface Timeouts {
  /** A request for its answer. */
  requestMs?: number;
  /** A query for a connection of the pool. */
  databaseMs?: number;
  /** A call of the queue. */
  queueMs?: number;
  /** Between two looks for what listeners are told of. */
  changesMs?: number;
  /** A count of a limit for Redis. */
  countMs?: number;
  /** A request for its body. */
  bodyMs?: number;
  /** The server for its clients. */
  clients?: Partial<Patience>;
}

export interface Management {
  port: number;
  /** Of the metrics and the probes. */
  operationsPort: number;
  /** Everything that is mounted, as Express patterns: a test holds the OpenAPI document against it. */
  endpoints: readonly { method: string; path: string }[];
  close(): Promise<void>;
}

/** What everything below is opened with. */
interface Surroundings {
  settings: Settings;
  logger: Logger;
  lifecycle: Lifecycle;
  health: ReturnType<typeof createHealth>;
  registry: ReturnType<typeof createMetricsRegistry>;
  metrics: ManagementMetrics;
  /** Null while no traces are exported. */
  traces: Traces | null;
  timeouts: Timeouts;
}

/**
 * The management service, listening. Opens its resources in the order below and closes them in reverse. A database or
 * queue that is away stops nothing: requests are answered with 503 until it is back.
 * @param options `destination`: where the log goes, standard output when omitted; `consoleFolder`: what was built of
 * the console, that of its package when omitted, and none when null; `process`: whose end it is part of, for a caller
 * that obeys signals before everything is open, and closes what was opened if this throws; `timeouts`: for tests, which
 * must not fail because a machine is busy
 */
export async function createManagement(
  settings: Settings,
  options: Pick<LoggerOptions, 'destination'> & {
    consoleFolder?: string | null;
    process?: { logger: Logger; lifecycle: Lifecycle };
    timeouts?: Timeouts;
  } = {},
): Promise<Management> {
  const service = 'management';
  const { consoleFolder = findConsole(), process, timeouts = {}, ...logging } = options;
  const logger = process?.logger ?? createLogger({ service, level: settings.logLevel, ...logging });
  const lifecycle = process?.lifecycle ?? new Lifecycle({ logger });
  const health = createHealth({ lifecycle, logger });
  const registry = createMetricsRegistry({ service });
  const metrics = createManagementMetrics(registry);

  try {
    const traces = await openTraces(service, logger);
    if (traces) addToEachLine(logger, traces.ids);
    if (traces) lifecycle.onClose('traces', () => traces.close(), { timeoutMs: TRACES_FLUSH_MS });
    const surroundings = { settings, logger, lifecycle, health, registry, metrics, traces, timeouts };
    const database = openServiceDatabase(surroundings);
    await requireLogin(database.requireUsable, logger);
    const clock = openServerClock({ ...surroundings, read: () => readServerTimeMs(database.pool) });
    const queues = openQueues(surroundings, clock);
    const limitStore = await openLimits(surroundings, database);
    const egress = openCountedEgress(surroundings);
    const relay = openRelay(surroundings, queues.eventQueue, database.pool);
    // A list that takes long is in no runner's way.
    const reportPool = openReportPool(surroundings);
    const reads = openLaggingReads(surroundings, database.pool);
    const changes = new ChangeStreams({ database: reads.ofNobody, lookEveryMs: timeouts.changesMs });
    const writes = openRecordWrites(surroundings, database.pool);
    measureRegularly(surroundings, database, queues.eventQueue);
    const { deliveryQueue } = queues;
    const resources = {
      logger,
      metrics,
      traces,
      database,
      reportPool,
      reads,
      deliveryQueue,
      limitStore,
      egress,
      relay,
      writes,
      changes,
      clock,
      timeouts,
    };
    const { endpoints, routing } = createEndpoints(settings, resources);
    const app = createHttpApp({
      endpoints,
      routing,
      trustedProxyCidrs: settings.trustedProxyCidrs,
      probes: createHttpProbes({ health }),
      log: logger,
      consoleFolder,
      metrics,
      traces,
    });
    const { host, port: wantedPort } = settings;
    const operations = await startProbeServer({
      host,
      port: settings.operationsPort,
      probes: createHttpProbes({ health, registry }),
    });
    // Closed after the server: how a drain goes is worth a look.
    lifecycle.onClose('operations server', () => operations.close());
    const server = await listen(app, { host, port: wantedPort, log: logger, patience: timeouts.clients });
    lifecycle.onClose('http server', () => server.close(), {
      timeoutMs: settings.deliveryTimeoutMs + DRAIN_MARGIN_MS,
    });
    // The server closes once nobody listens.
    lifecycle.onClose('streams of changes', () => changes.close());

    const { port } = server;
    const { port: operationsPort } = operations;
    const described = describeSettings(settings, SECRET_SETTINGS);
    const { backendName: queueBackend } = queues;
    logger.info({ settings: described, port, operationsPort, queueBackend }, 'management is listening');
    return {
      port,
      operationsPort,
      endpoints: endpoints.map(({ method, path }) => ({ method, path })),
      close: () => lifecycle.close('closed by its owner'),
    };
  } catch (error) {
    if (!process) await lifecycle.close('it could not start');
    throw error;
  }
}

/** The database, and a check that it responds, keeps prepared statements and has the schema of this release. */
type ServiceDatabase = PrismaDatabase & { requireUsable: () => Promise<void> };

function openServiceDatabase(surroundings: Surroundings): ServiceDatabase {
  const { settings, logger, lifecycle, health, registry, timeouts } = surroundings;
  const database = openPrismaDatabase({
    url: settings.databaseUrl,
    connectTimeoutMs: timeouts.databaseMs,
    onConnectionError: (err) => logger.warn({ err }, 'an idle database connection broke'),
  });
  lifecycle.onClose('database', () => database.close());
  registerPoolMetrics(registry, database.pool);
  // The mode of a pooler does not change while the process runs, so one success is enough.
  let keepsStatements = false;
  const requireUsable = async () => {
    if (!keepsStatements)
      await requirePreparedStatements({ url: settings.databaseUrl, connectTimeoutMs: timeouts.databaseMs });
    keepsStatements = true;
    await requireSchema(database.pool);
  };
  health.register('database', 'ready', requireUsable);
  return { ...database, requireUsable };
}

/** Problems that only an operator can solve: waiting does not help. */
const LASTING: ReadonlySet<string> = new Set([
  'database_login_refused',
  'database_missing',
  'database_pooler',
] satisfies ConnectionProblem['code'][]);

/**
 * A problem that lasts ends the start: the operator learns of it at once, and not from the first request. A database that
 * is away, or behind, may come.
 */
async function requireLogin(requireUsable: () => Promise<void>, logger: Logger): Promise<void> {
  try {
    await withinDeadline(LOGIN_TIMEOUT_MS, requireUsable);
  } catch (error) {
    const problem = connectionProblem(error);
    if (problem !== null && LASTING.has(problem.code)) throw error;
    const reason = problem?.sentence ?? 'The database did not answer in time.';
    logger.warn({ reason }, 'requests are answered with 503 until the database is there');
  }
}

function openQueues(
  { settings, logger, lifecycle, health, traces, timeouts }: Surroundings,
  clock: Clock,
): {
  backendName: QueueBackendName;
  deliveryQueue: DeliveryQueue;
  eventQueue: EventQueue;
} {
  const queueTelemetry = traces ? openQueueTelemetry : undefined;
  const backend = createQueueBackend(settings.queueUrl, { callMs: timeouts.queueMs, clock });
  const onQueueError = (err: Error) => logger.warn({ err }, 'the queue connection has trouble');
  const deliveryQueue = openDeliveryQueue(backend, onQueueError, queueTelemetry);
  lifecycle.onClose('delivery queue', () => deliveryQueue.close());
  const eventQueue = openEventQueue(backend, onQueueError, queueTelemetry);
  lifecycle.onClose('event queue', () => eventQueue.close());
  // Told, and no more: a queue that is away must not take every process of the API out of service. What is reported is
  // committed, and waits to be relayed.
  health.register('queue', 'ready', () => requireKeeping(deliveryQueue), { required: false });
  return { backendName: backend.name, deliveryQueue, eventQueue };
}

async function openLimits(
  { settings, logger, lifecycle, timeouts }: Surroundings,
  { pool }: PrismaDatabase,
): Promise<LimitStore> {
  const limitStore = await openLimitStore({
    queueUrl: settings.queueUrl,
    pool,
    countTimeoutMs: timeouts.countMs,
    onError: (err) => logger.warn({ err }, 'the connection that rate limits are counted on has trouble'),
  });
  lifecycle.onClose('limit store', () => limitStore.close());
  return limitStore;
}

/** Loaded by the first test of an endpoint: most processes make none, and the HTTP client is 15 MB of memory. */
function openCountedEgress({ settings, lifecycle, registry }: Surroundings): Pick<Egress, 'post'> {
  const blockedAddresses = registerBlockedAddresses(registry);
  const options = { ...egressRules(settings), timeoutMs: settings.deliveryTimeoutMs };
  let opened: Promise<Egress> | null = null;
  const open = async () => (await import('@runhook/egress/client')).createEgress(options);
  lifecycle.onClose('egress', async () => (await opened)?.close());
  return {
    async post(request) {
      opened ??= open();
      const result = await (await opened).post(request);
      if (result.error && isForbidden(result.error.code)) blockedAddresses.inc();
      return result;
    },
  };
}

function openRelay(
  { logger, lifecycle, metrics, traces }: Surroundings,
  events: EventQueue,
  pool: Pool,
): Relay {
  const relay = new Relay({
    events,
    setAside: (rejected) => setAsideEvents({ pool, metrics, logger }, rejected),
    logger,
    traces,
    onMoved: (result, count) => metrics.relayed.inc({ result }, count),
  });
  metrics.measureRelay(() => relay.waiting);
  lifecycle.onClose('relay', () => relay.stop());
  return relay;
}

/** Separate from the pool of all other requests. */
function openReportPool({ settings, logger, lifecycle, timeouts }: Surroundings): Pool {
  const database = openDatabase({
    url: settings.databaseUrl,
    connectTimeoutMs: timeouts.databaseMs,
    connectionsMax: REPORT_CONNECTIONS,
    statementTimeoutMs: REPORT_TIMEOUT_MS,
    onConnectionError: (err) => logger.warn({ err }, 'an idle database connection broke'),
  });
  lifecycle.onClose('report database', () => database.close());
  return database.pool;
}

function measureRegularly(
  { logger, lifecycle, registry }: Surroundings,
  { pool }: PrismaDatabase,
  queue: EventQueue,
): void {
  const dependencies = registerDependencyMetrics(registry);
  const asking = { database: () => requireSchema(pool), queue: () => queue.counts() };
  const measure = () => measureDependencies(asking, dependencies);
  const measuring = startPeriodic(DEPENDENCIES_EVERY_MS, measure, (err) =>
    logger.warn({ err }, 'what the service depends on could not be asked'),
  );
  lifecycle.onClose('dependency measure', () => void measuring.stop());
}
