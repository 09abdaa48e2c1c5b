import { readServerTimeMs } from '@runhook/database';
import {
  addLogFields,
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
  startProbeServer,
} from '@runhook/runtime';
import { findConsole } from './console-files/routes.ts';
import { createEndpoints } from './endpoints.ts';
import { openFeed } from './feed/open-feed.ts';
import { READ_CONNECTIONS } from './http/account-budgets.ts';
import { createBaseUrl } from './http/base-url.ts';
import { listen } from './http/listen.ts';
import { openReplicaReads } from './http/replica-reads.ts';
import { createHttpApp } from './http/server.ts';
import { createManagementMetrics } from './metrics.ts';
import { openRecordWrites } from './record-writes.ts';
import {
  measureDependenciesPeriodically,
  openArtifacts,
  openLimits,
  openMeasuredEgress,
  openQueues,
  openSeparatePool,
  openServiceDatabase,
  requireLogin,
  startRelay,
  startSignInFailures,
  startTokenUses,
  type Timeouts,
} from './resources.ts';
import { RunWaits } from './runs/run-waits.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';
import { ChangeStreams } from './subscriptions/changes.ts';
import { StreamCallers } from './subscriptions/stream-callers.ts';

/** Time to drain the HTTP server beyond the timeout of its longest request, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;
/**
 * The pool for run reports. Connections: three concurrent batches of them, and one batch of published events. The timeout
 * is below the deadline of requests, so that a caller learns how its statement ended.
 */
const REPORT_POOL = { connectionsMax: 4, statementTimeoutMs: 5_000 };
/** The pool for artifacts: four statements at once, each of at most a part of a file. */
const ARTIFACT_POOL = { connectionsMax: 4 };
/** Maximum wait for an unavailable trace collector when the service stops. */
const TRACES_FLUSH_MS = 3_000;

export interface Management {
  port: number;
  /** Port of the metrics and the probes. */
  operationsPort: number;
  /** All mounted endpoints, as Express patterns. A test compares the OpenAPI document with them. */
  endpoints: readonly { method: string; path: string }[];
  close(): Promise<void>;
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
    const feed = openFeed(context, database.pool);
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
      feed,
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
    // The server cannot close while streams are open or callers wait.
    lifecycle.onClose('streams of changes', () => changes.close());
    lifecycle.onClose('waiting runners', () => runWaits.close());
    lifecycle.onClose('waiting readers of the feed', () => feed.waits.close());

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
