import { type ArtifactStore, openArtifactStore } from '@runhook/artifacts';
import {
  type ConnectionProblem,
  type DatabaseOptions,
  findConnectionProblem,
  openDatabase,
  type Pool,
  readServerTimeMs,
  requirePreparedStatements,
  requireSchema,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { clientCertificateOf, type Egress, egressRules, isForbidden } from '@runhook/egress';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
  openQueueTelemetry,
  openRunRequestQueue,
  type QueueBackendName,
  type RunRequestQueue,
  requireNoEviction,
} from '@runhook/queue';
import {
  addLogFields,
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
import { READ_CONNECTIONS } from './http/account-budgets.ts';
import { createBaseUrl } from './http/base-url.ts';
import { type LimitStore, openLimitStore } from './http/limits.ts';
import { type ClientTimeouts, listen } from './http/listen.ts';
import { openReplicaReads } from './http/replica-reads.ts';
import { createHttpApp } from './http/server.ts';
import { TokenUses } from './identity/token-uses.ts';
import { createManagementMetrics, type ManagementMetrics, measureDependencies } from './metrics.ts';
import { openRecordWrites } from './record-writes.ts';
import { quarantineEvents } from './runs/quarantine.ts';
import { Relay } from './runs/relay.ts';
import { RunWaits } from './runs/run-waits.ts';
import { createSignInFailures, type SignInFailures } from './sessions/sign-in-failures.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';
import { ChangeStreams } from './subscriptions/changes.ts';
import { StreamCallers } from './subscriptions/stream-callers.ts';

/** Time to drain the HTTP server beyond the timeout of its longest request, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;
const DEPENDENCY_CHECK_INTERVAL_MS = 5_000;
const TOKEN_USES_INTERVAL_MS = 10_000;
/** Interval at which counts of failed sign-ins are stored; a process that dies loses those since the last time. */
const SIGN_IN_FAILURES_INTERVAL_MS = 2_000;
/**
 * The pool for run reports. Connections: three concurrent batches of them, and one batch of published events. The timeout
 * is below the deadline of requests, so that a caller learns how its statement ended.
 */
const REPORT_POOL = { connectionsMax: 4, statementTimeoutMs: 5_000 };
/** The pool for artifacts: four statements at once, each of at most a part of a file. */
const ARTIFACT_POOL = { connectionsMax: 4 };
/** Deadline of the database check of a starting service. */
const LOGIN_TIMEOUT_MS = 3_000;
/** Maximum wait for an unavailable trace collector when the service stops. */
const TRACES_FLUSH_MS = 3_000;

/** Timeouts and one interval in milliseconds. The default of each is in the package or file that waits. */
export interface Timeouts {
  /** Time for the admission of a request, and again for its work. */
  requestMs?: number;
  /** Time a query may wait for a connection of the pool. */
  databaseMs?: number;
  /** Time a call of the queue may take. */
  queueMs?: number;
  /** Interval between two polls for the listeners of `GET …/webhooks/changes`. */
  changesMs?: number;
  /** Time Redis, if it has the rate limits, may take to count a call. */
  countMs?: number;
  /** Time the body of a request may take to arrive. */
  bodyMs?: number;
  /** Time for which an answer of the identity provider about a user's access is valid. */
  oidcCheckMs?: number;
  /** Times in which clients must send their requests. */
  clients?: Partial<ClientTimeouts>;
}

export interface Management {
  port: number;
  /** Port of the metrics and the probes. */
  operationsPort: number;
  /** All mounted endpoints, as Express patterns. A test compares the OpenAPI document with them. */
  endpoints: readonly { method: string; path: string }[];
  close(): Promise<void>;
}

/** Shared arguments of the functions below that open resources. */
interface ServiceContext {
  settings: Settings;
  logger: Logger;
  lifecycle: Lifecycle;
  health: ReturnType<typeof createHealth>;
  registry: ReturnType<typeof createMetricsRegistry>;
  metrics: ManagementMetrics;
  /** Null unless traces are exported. */
  traces: Traces | null;
  timeouts: Timeouts;
}

/**
 * Starts the management service. Opens its resources in the order below and closes them in reverse order. An
 * unavailable database or queue does not stop the service; requests that need the database get a 503 meanwhile.
 * @param options `destination`: stream of the log, standard output when omitted; `consoleFolder`: folder of the built
 * console, that of its package when omitted, no console when null; `process`: logger and lifecycle of a caller that
 * handles stop signals during the start and closes the opened resources if this throws; `timeouts`: for tests, which
 * must not fail on a busy machine
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
    if (traces) addLogFields(logger, traces.ids);
    if (traces) lifecycle.onClose('traces', () => traces.close(), { timeoutMs: TRACES_FLUSH_MS });
    const context = { settings, logger, lifecycle, health, registry, metrics, traces, timeouts };
    const database = openServiceDatabase(context);
    await requireLogin(database.requireUsable, logger);
    const clock = openServerClock({ ...context, read: () => readServerTimeMs(database.pool) });
    const queues = openQueues(context, clock);
    const limitStore = await openLimits(context, database);
    const egress = openMeasuredEgress(context);
    const relay = startRelay(context, queues.eventQueue, database.pool);
    const signInFailures = startSignInFailures(context, database.pool);
    const reportPool = openSeparatePool(context, 'report database', REPORT_POOL);
    // Slow lists and counts must not delay authentication.
    const readPool = openSeparatePool(context, 'read database', { connectionsMax: READ_CONNECTIONS });
    const artifactPool = openSeparatePool(context, 'artifact database', ARTIFACT_POOL);
    const artifactStore = openArtifacts(context, artifactPool);
    const reads = openReplicaReads(context, readPool);
    const callers = new StreamCallers({
      pool: database.pool,
      sessionIdleMinutes: settings.consoleSessionIdleMinutes,
      // Called for open streams only, so after the endpoints were created.
      hasAccess: (userId) => hasAccess(userId),
    });
    const changes = new ChangeStreams({
      database: reads.background,
      callers,
      pollIntervalMs: timeouts.changesMs,
    });
    const tokenUses = startTokenUses(context, database);
    const writes = openRecordWrites(context, database.pool);
    measureDependenciesPeriodically(context, database, queues.eventQueue);
    const runWaits = new RunWaits({ database: database.pool });
    const { deliveryQueue, runRequestQueue } = queues;
    const resources = {
      logger,
      metrics,
      traces,
      database,
      reportPool,
      artifactPool,
      artifactStore,
      reads,
      deliveryQueue,
      runRequestQueue,
      runWaits,
      limitStore,
      egress,
      relay,
      signInFailures,
      writes,
      changes,
      tokenUses,
      clock,
      timeouts,
    };
    const { endpoints, routing, hasAccess } = createEndpoints(settings, resources);
    const app = createHttpApp({
      endpoints,
      routing,
      trustedProxyCidrs: settings.trustedProxyCidrs,
      baseUrl: createBaseUrl(settings.publicUrl),
      securityContacts: settings.securityContact,
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
    // Closed after the server, so that metrics can be read while the server drains.
    lifecycle.onClose('operations server', () => operations.close());
    const server = await listen(app, {
      host,
      port: wantedPort,
      log: logger,
      clientTimeouts: timeouts.clients,
    });
    lifecycle.onClose('http server', () => server.close(), {
      timeoutMs: settings.deliveryTimeoutMs + DRAIN_MARGIN_MS,
    });
    // The server cannot close while streams are open or runners wait.
    lifecycle.onClose('streams of changes', () => changes.close());
    lifecycle.onClose('waiting runners', () => runWaits.close());

    const { port } = server;
    const { port: operationsPort } = operations;
    const describedSettings = describeSettings(settings, SECRET_SETTINGS);
    const { backendName: queueBackend } = queues;
    logger.info(
      { settings: describedSettings, port, operationsPort, queueBackend },
      'management is listening',
    );
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

/** The database with a check that it responds, retains prepared statements, and has the schema of this release. */
type ServiceDatabase = PrismaDatabase & { requireUsable: () => Promise<void> };

function openServiceDatabase(context: ServiceContext): ServiceDatabase {
  const { settings, logger, lifecycle, health, registry, timeouts } = context;
  const database = openPrismaDatabase({
    url: settings.databaseUrl,
    connectTimeoutMs: timeouts.databaseMs,
    onConnectionError: (err) => logger.warn({ err }, 'idle database connection broke; the pool replaces it'),
  });
  lifecycle.onClose('database', () => database.close());
  registerPoolMetrics(registry, database.pool);
  // The mode of a connection pooler does not change while the process runs, so one success is enough.
  let retainsStatements = false;
  const requireUsable = async () => {
    if (!retainsStatements)
      await requirePreparedStatements({ url: settings.databaseUrl, connectTimeoutMs: timeouts.databaseMs });
    retainsStatements = true;
    await requireSchema(database.pool);
  };
  health.register('database', 'ready', requireUsable);
  return { ...database, requireUsable };
}

/** Codes of problems that only an operator can solve. */
const PERMANENT_PROBLEM_CODES: ReadonlySet<string> = new Set([
  'database_login_rejected',
  'database_missing',
  'database_pooler',
] satisfies ConnectionProblem['code'][]);

/**
 * Ends the start if only an operator can solve the problem, so that the operator sees it before the first request. A
 * database that is unavailable or not migrated yet may become usable later.
 */
async function requireLogin(requireUsable: () => Promise<void>, logger: Logger): Promise<void> {
  try {
    await withinDeadline(LOGIN_TIMEOUT_MS, requireUsable);
  } catch (error) {
    const problem = findConnectionProblem(error);
    if (problem !== null && PERMANENT_PROBLEM_CODES.has(problem.code)) throw error;
    const reason = problem?.sentence ?? 'The database did not respond in time.';
    logger.warn({ reason }, 'database unavailable, responding with 503');
  }
}

function openQueues(
  { settings, logger, lifecycle, health, traces, timeouts }: ServiceContext,
  clock: Clock,
): {
  backendName: QueueBackendName;
  deliveryQueue: DeliveryQueue;
  eventQueue: EventQueue;
  runRequestQueue: RunRequestQueue;
} {
  const queueTelemetry = traces ? openQueueTelemetry : undefined;
  const backend = createQueueBackend(settings.queueUrl, { callMs: timeouts.queueMs, clock });
  const onQueueError = (err: Error) => logger.warn({ err }, 'queue connection error');
  const deliveryQueue = openDeliveryQueue(backend, onQueueError, queueTelemetry);
  lifecycle.onClose('delivery queue', () => deliveryQueue.close());
  const eventQueue = openEventQueue(backend, onQueueError, queueTelemetry);
  lifecycle.onClose('event queue', () => eventQueue.close());
  const runRequestQueue = openRunRequestQueue(backend, onQueueError);
  lifecycle.onClose('queue of run requests', () => runRequestQueue.close());
  // Not required: an unavailable queue must not take every process of the API out of service. Reports are committed and
  // wait for the relay.
  health.register('queue', 'ready', () => requireNoEviction(deliveryQueue), { required: false });
  return { backendName: backend.name, deliveryQueue, eventQueue, runRequestQueue };
}

async function openLimits(
  { settings, logger, lifecycle, timeouts }: ServiceContext,
  { pool }: PrismaDatabase,
): Promise<LimitStore> {
  const limitStore = await openLimitStore({
    queueUrl: settings.queueUrl,
    pool,
    countTimeoutMs: timeouts.countMs,
    onError: (err) => logger.warn({ err }, 'rate limit store connection error'),
  });
  lifecycle.onClose('limit store', () => limitStore.close());
  return limitStore;
}

/** Loads the HTTP client with the first test of an endpoint: it takes 15 MB, and most processes never test one. */
function openMeasuredEgress({ settings, lifecycle, registry }: ServiceContext): Pick<Egress, 'post'> {
  const blockedAddresses = registerBlockedAddresses(registry);
  const options = {
    ...egressRules(settings),
    timeoutMs: settings.deliveryTimeoutMs,
    clientCertificate: clientCertificateOf(settings),
  };
  let egressPromise: Promise<Egress> | null = null;
  const open = async () => (await import('@runhook/egress/client')).createEgress(options);
  lifecycle.onClose('egress', async () => (await egressPromise)?.close());
  return {
    async post(request) {
      egressPromise ??= open();
      const result = await (await egressPromise).post(request);
      if (result.error && isForbidden(result.error.code)) blockedAddresses.inc();
      return result;
    },
  };
}

function startRelay(
  { logger, lifecycle, metrics, traces }: ServiceContext,
  events: EventQueue,
  pool: Pool,
): Relay {
  const relay = new Relay({
    events,
    quarantine: (rejected) => quarantineEvents({ pool, metrics, logger }, rejected),
    logger,
    traces,
    onRelayed: (result, count) => metrics.relayed.inc({ result }, count),
  });
  metrics.measureRelay(() => relay.backlog);
  lifecycle.onClose('relay', () => relay.stop());
  return relay;
}

function startSignInFailures(
  { settings, logger, lifecycle, metrics }: ServiceContext,
  pool: Pool,
): SignInFailures {
  const failures = createSignInFailures({
    pool,
    log: logger,
    total: metrics.signInFailures,
    encryptionKeys: settings.encryptionKeys,
  });
  const onError = (err: unknown) => logger.warn({ err }, 'failed sign-ins not stored, will retry');
  const timer = startPeriodic(SIGN_IN_FAILURES_INTERVAL_MS, () => failures.flush(), onError);
  lifecycle.onClose('failed sign-ins', async () => {
    await timer.stop();
    await failures.flush();
  });
  return failures;
}

function startTokenUses({ logger, lifecycle }: ServiceContext, { pool }: PrismaDatabase): TokenUses {
  const tokenUses = new TokenUses(pool);
  const onError = (err: unknown) => logger.warn({ err }, 'last uses of tokens could not be recorded');
  const timer = startPeriodic(TOKEN_USES_INTERVAL_MS, () => tokenUses.flush(), onError);
  lifecycle.onClose('token uses', async () => {
    await timer.stop();
    await tokenUses.flush().catch(onError);
  });
  return tokenUses;
}

/** Opens a further pool for one kind of statements, which the other kinds must not delay. */
function openSeparatePool(
  { settings, logger, lifecycle, timeouts }: ServiceContext,
  name: string,
  options: Pick<DatabaseOptions, 'connectionsMax' | 'statementTimeoutMs'>,
): Pool {
  const database = openDatabase({
    url: settings.databaseUrl,
    connectTimeoutMs: timeouts.databaseMs,
    ...options,
    onConnectionError: (err) => logger.warn({ err }, 'idle database connection broke; the pool replaces it'),
  });
  lifecycle.onClose(name, () => database.close());
  return database.pool;
}

function openArtifacts({ settings, lifecycle }: ServiceContext, database: Pool): ArtifactStore {
  const store = openArtifactStore({
    location: settings.artifactsUrl,
    database,
    s3: { endpoint: settings.artifactsS3Endpoint, region: settings.artifactsS3Region },
  });
  lifecycle.onClose('artifact store', () => store.close());
  return store;
}

function measureDependenciesPeriodically(
  { logger, lifecycle, registry }: ServiceContext,
  { pool }: PrismaDatabase,
  queue: EventQueue,
): void {
  const dependencies = registerDependencyMetrics(registry);
  const checks = { database: () => requireSchema(pool), queue: () => queue.counts() };
  const measure = () => measureDependencies(checks, dependencies);
  const timer = startPeriodic(DEPENDENCY_CHECK_INTERVAL_MS, measure, (err) =>
    logger.warn({ err }, 'database and queue could not be checked'),
  );
  lifecycle.onClose('dependency measure', () => void timer.stop());
}
