/** Opens the resources of the service: each registers how it is closed, and what it measures. */
import { type ArtifactStore, openArtifactStore } from '@runhook/artifacts';
import {
  type ConnectionProblem,
  type DatabaseOptions,
  findConnectionProblem,
  openDatabase,
  type Pool,
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
  type Clock,
  type createHealth,
  type createMetricsRegistry,
  type Lifecycle,
  type Logger,
  registerBlockedAddresses,
  registerDependencyMetrics,
  registerPoolMetrics,
  startPeriodic,
  type Traces,
  withinDeadline,
} from '@runhook/runtime';
import { type LimitStore, openLimitStore } from './http/limits.ts';
import type { ClientTimeouts } from './http/listen.ts';
import { TokenUses } from './identity/token-uses.ts';
import { type ManagementMetrics, measureDependencies } from './metrics.ts';
import { quarantineEvents } from './runs/quarantine.ts';
import { Relay } from './runs/relay.ts';
import { createSignInFailures, type SignInFailures } from './sessions/sign-in-failures.ts';
import type { Settings } from './settings.ts';

const DEPENDENCY_CHECK_INTERVAL_MS = 5_000;
const TOKEN_USES_INTERVAL_MS = 10_000;
/** Interval at which counts of failed sign-ins are stored; a process that dies loses those since the last time. */
const SIGN_IN_FAILURES_INTERVAL_MS = 2_000;
/** Deadline of the database check of a starting service. */
const LOGIN_TIMEOUT_MS = 3_000;

/** Timeouts and intervals in milliseconds. The default of each is in the package or file that waits. */
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

/** Shared arguments of the functions that open resources. */
export interface ServiceContext {
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

/** The database with a check that it responds, retains prepared statements, and has the schema of this release. */
type ServiceDatabase = PrismaDatabase & { requireUsable: () => Promise<void> };

export function openServiceDatabase(context: ServiceContext): ServiceDatabase {
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
export async function requireLogin(requireUsable: () => Promise<void>, logger: Logger): Promise<void> {
  try {
    await withinDeadline(LOGIN_TIMEOUT_MS, requireUsable);
  } catch (error) {
    const problem = findConnectionProblem(error);
    if (problem !== null && PERMANENT_PROBLEM_CODES.has(problem.code)) throw error;
    const reason = problem?.sentence ?? 'The database did not respond in time.';
    logger.warn({ reason }, 'database unavailable, responding with 503');
  }
}

export function openQueues(
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

export async function openLimits(
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
export function openMeasuredEgress({ settings, lifecycle, registry }: ServiceContext): Pick<Egress, 'post'> {
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

export function startRelay(
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

export function startSignInFailures(
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

export function startTokenUses({ logger, lifecycle }: ServiceContext, { pool }: PrismaDatabase): TokenUses {
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
export function openSeparatePool(
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

export function openArtifacts({ settings, lifecycle }: ServiceContext, database: Pool): ArtifactStore {
  const store = openArtifactStore({
    location: settings.artifactsUrl,
    database,
    s3: { endpoint: settings.artifactsS3Endpoint, region: settings.artifactsS3Region },
  });
  lifecycle.onClose('artifact store', () => store.close());
  return store;
}

export function measureDependenciesPeriodically(
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
