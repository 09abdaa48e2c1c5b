import { createSecretBox, requireSchema } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { createAddressGuard, createEgress, type Egress } from '@runhook/egress';
import { createQueueBackend, openDeliveryQueue, openEventQueue, openQueueTelemetry } from '@runhook/queue';
import {
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  describeSettings,
  Lifecycle,
  type Logger,
  type LoggerOptions,
  openTraces,
  registerBlockedAddresses,
  registerDependencyMetrics,
  registerPoolMetrics,
  startPeriodic,
} from '@runhook/runtime';
import { findConsole } from './console-files/routes.ts';
import { getRecoveryEndpoint, recoverEndpoint } from './deliveries/recover.ts';
import { redeliverEndpoint } from './deliveries/redeliver.ts';
import { deliveryEndpoints } from './deliveries/routes.ts';
import { statisticsEndpoint } from './deliveries/statistics.ts';
import { createIdempotency } from './http/idempotency.ts';
import { openLimitStore } from './http/limits.ts';
import { createHttpApp, listen } from './http/server.ts';
import { accountsEndpoints } from './identity/accounts.ts';
import { profileEndpoint, rotateApiKeyEndpoint } from './identity/api-key.ts';
import { findPrincipal } from './identity/find-principal.ts';
import { jobsEndpoints } from './jobs/routes.ts';
import { createManagementMetrics, createOutboxMeasure } from './metrics.ts';
import { createRelay } from './runs/relay.ts';
import { runsEndpoints } from './runs/routes.ts';
import { createRuns } from './runs/runs.ts';
import { createConsoleSessions } from './sessions/console-sessions.ts';
import { sessionEndpoints } from './sessions/routes.ts';
import { createPasswordCheck, createSignIn, createSignInLimits } from './sessions/sign-in.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';
import { subscriptionEndpoints } from './subscriptions/routes.ts';
import { testSubscriptionEndpoint } from './subscriptions/test-endpoint.ts';

/** What the requests in flight may need beyond the longest of them, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;
const OUTBOX_EVERY_MS = 5_000;
/** A collector that is away must not hold up a stop. */
const TRACES_FLUSH_MS = 3_000;

const REQUEST_LIMIT_WINDOW_SECONDS = 60;

export interface Management {
  port: number;
  /** Everything that is mounted, as Express patterns: a test holds the OpenAPI document against it. */
  endpoints: readonly { method: string; path: string }[];
  close(): Promise<void>;
}

/**
 * The management service, listening. Opens its resources in the order below and closes them in reverse. A database or
 * queue that is away stops nothing: requests are answered with 503 until it is back.
 * @param options `destination`: where the log goes, standard output when omitted; `consoleFolder`: what was built of
 * the console, that of its package when omitted, and none when null; `process`: whose end it is part of, for a caller
 * that obeys signals before everything is open, and closes what was opened if this throws
 */
export async function createManagement(
  settings: Settings,
  options: Pick<LoggerOptions, 'destination'> & {
    consoleFolder?: string | null;
    process?: { logger: Logger; lifecycle: Lifecycle };
  } = {},
): Promise<Management> {
  const service = 'management';
  const { consoleFolder = findConsole(), process, ...logging } = options;
  const logger = process?.logger ?? createLogger({ service, level: settings.logLevel, ...logging });
  const lifecycle = process?.lifecycle ?? new Lifecycle({ logger });
  const health = createHealth({ lifecycle, logger });
  const registry = createMetricsRegistry({ service });
  const metrics = createManagementMetrics(registry);
  const blockedAddresses = registerBlockedAddresses(registry);
  const secrets = createSecretBox(settings.encryptionKeys);
  const guard = createAddressGuard(settings.egressAllowCidrs);

  try {
    const traces = await openTraces(service, logger);
    if (traces) lifecycle.onClose('traces', () => traces.close(), { timeoutMs: TRACES_FLUSH_MS });
    const queueTelemetry = traces ? openQueueTelemetry : undefined;
    const database = openPrismaDatabase({
      url: settings.databaseUrl,
      onConnectionError: (err) => logger.warn({ err }, 'an idle database connection broke'),
    });
    lifecycle.onClose('database', () => database.close());
    registerPoolMetrics(registry, database.pool);
    // Asks the database, too.
    health.register('database', 'ready', () => requireSchema(database.pool));

    const queueBackend = createQueueBackend(settings.queueUrl);
    const onQueueError = (err: Error) => logger.warn({ err }, 'the queue connection has trouble');
    const deliveryQueue = openDeliveryQueue(queueBackend, onQueueError, queueTelemetry);
    lifecycle.onClose('delivery queue', () => deliveryQueue.close());
    const eventQueue = openEventQueue(queueBackend, onQueueError, queueTelemetry);
    lifecycle.onClose('event queue', () => eventQueue.close());
    health.register('queue', 'ready', async () => {
      await eventQueue.counts();
    });

    const limitStore = await openLimitStore({
      queueUrl: settings.queueUrl,
      pool: database.pool,
      onError: (err) => logger.warn({ err }, 'the connection that rate limits are counted on has trouble'),
    });
    lifecycle.onClose('limit store', () => limitStore.close());
    const requestLimit = limitStore.createLimiter({
      name: 'requests',
      callsMax: settings.apiRateLimitPerMinute,
      windowSeconds: REQUEST_LIMIT_WINDOW_SECONDS,
      refusedFromMemory: true,
    });

    const egress = createEgress({
      allowCidrs: settings.egressAllowCidrs,
      timeoutMs: settings.deliveryTimeoutMs,
    });
    lifecycle.onClose('egress', () => egress.close());
    const countedEgress: Pick<Egress, 'post'> = {
      async post(request) {
        const result = await egress.post(request);
        if (result.error?.code === 'address_forbidden') blockedAddresses.inc();
        return result;
      },
    };

    const relay = createRelay({
      pool: database.pool,
      events: eventQueue,
      logger,
      traces,
      onMoved: ({ sent, vanished }) => {
        metrics.relayed.inc({ result: 'sent' }, sent);
        metrics.relayed.inc({ result: 'vanished' }, vanished);
      },
    });
    lifecycle.onClose('relay', () => relay.stop());

    const { prisma, pool } = database;
    const outbox = createOutboxMeasure({
      pool,
      queue: eventQueue,
      dependencies: registerDependencyMetrics(registry),
      registry,
    });
    const measuring = startPeriodic(OUTBOX_EVERY_MS, outbox, (err) =>
      logger.warn({ err }, 'the outbox could not be measured'),
    );
    lifecycle.onClose('outbox measure', () => void measuring.stop());
    const sessions = createConsoleSessions({
      prisma,
      idleMinutes: settings.consoleSessionIdleMinutes,
      maxHours: settings.consoleSessionMaxHours,
    });
    const signIn = createSignIn({
      prisma,
      sessions,
      passwords: await createPasswordCheck(),
      limits: createSignInLimits(limitStore, {
        perEmailMax: settings.signInAttemptsPerEmail,
        perAddressMax: settings.signInAttemptsPerAddress,
      }),
    });
    const idempotency = createIdempotency({
      pool,
      secrets,
      onError: (err) => logger.warn({ err }, 'an answer could not be kept under its idempotency key'),
    });
    const { deliveryTimeoutMs, deliveryMaxRetries } = settings;
    const endpoints = [
      ...subscriptionEndpoints({ prisma, secrets, urlProblem: guard.urlProblem }),
      testSubscriptionEndpoint({ prisma, secrets, egress: countedEgress, deliveryTimeoutMs }),
      ...deliveryEndpoints({ prisma, pool }),
      redeliverEndpoint({ prisma, pool, deliveryQueue, deliveryMaxRetries }),
      recoverEndpoint({ prisma, pool }),
      getRecoveryEndpoint({ prisma }),
      statisticsEndpoint({ prisma, pool }),
      ...jobsEndpoints({ prisma }),
      ...runsEndpoints(
        createRuns({
          pool,
          relay,
          onAccepted: (count) => metrics.accepted.inc(count),
          ...(traces && { traceContext: () => traces.carried() }),
        }),
      ),
      ...accountsEndpoints({ prisma }),
      rotateApiKeyEndpoint({ prisma, secrets }),
      ...sessionEndpoints({ prisma, sessions, signIn }),
      profileEndpoint({ prisma, secrets }),
    ];
    const app = createHttpApp({
      endpoints,
      entrance: {
        findPrincipal: (credential) => findPrincipal(pool, credential),
        findSession: (sessionId) => sessions.find(sessionId),
        requestLimit,
        idempotency,
      },
      trustedProxyCidrs: settings.trustedProxyCidrs,
      probes: createHttpProbes({ health, registry }),
      log: logger,
      consoleFolder,
      metrics,
      traces,
    });
    const server = await listen(app, settings);
    lifecycle.onClose('http server', () => server.close(), {
      timeoutMs: deliveryTimeoutMs + DRAIN_MARGIN_MS,
    });

    const { port } = server;
    const described = describeSettings(settings, SECRET_SETTINGS);
    logger.info({ settings: described, port, queueBackend: queueBackend.name }, 'management is listening');
    return {
      port,
      endpoints: endpoints.map(({ method, path }) => ({ method, path })),
      close: () => lifecycle.close('closed by its owner'),
    };
  } catch (error) {
    if (!process) await lifecycle.close('it could not start');
    throw error;
  }
}
