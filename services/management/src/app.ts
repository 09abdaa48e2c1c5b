import { createSecretBox, openDatabase, runStatement } from '@runhook/database';
import { createAddressGuard, createEgress } from '@runhook/egress';
import { createQueueBackend, openDeliveryQueue, openEventQueue } from '@runhook/queue';
import {
  createHealth,
  createHttpProbes,
  createLogger,
  createMetricsRegistry,
  describeSettings,
  Lifecycle,
  type LoggerOptions,
} from '@runhook/runtime';
import { createConsoleSessions } from './data/console-sessions.ts';
import { findPrincipal } from './data/principals.ts';
import { createRuns } from './data/runs.ts';
import { createHttpApp } from './http/create-http-app.ts';
import { listen } from './http/listen.ts';
import { accountsEndpoints } from './http/routes/accounts.ts';
import { rotateApiKeyEndpoint } from './http/routes/api-key.ts';
import { deliveryEndpoints } from './http/routes/deliveries/endpoints.ts';
import { jobsEndpoints } from './http/routes/jobs.ts';
import { profileEndpoint } from './http/routes/profile.ts';
import { runsEndpoints } from './http/routes/runs.ts';
import { sessionEndpoints } from './http/routes/session.ts';
import { subscriptionEndpoints } from './http/routes/subscriptions/endpoints.ts';
import { createIdempotency } from './idempotency/idempotency.ts';
import { openLimitStore } from './limits/limit-store.ts';
import { createRelay } from './relay/relay.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';
import { createPasswordCheck } from './sign-in/check-password.ts';
import { createSignIn } from './sign-in/sign-in.ts';
import { createSignInLimits } from './sign-in/sign-in-limits.ts';

/** What the requests in flight may need beyond the longest of them, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;

const REQUEST_LIMIT_WINDOW_SECONDS = 60;

export interface Management {
  port: number;
  /** Everything that is mounted, as Express patterns: a test holds the OpenAPI document against it. */
  endpoints: readonly { method: string; path: string }[];
  close(): Promise<void>;
  /** Waits for a stop signal, closes, and resolves with the exit code. */
  runUntilSignal(): Promise<number>;
}

/**
 * The management service, listening. Opens its resources in the order below and closes them in reverse. A database or
 * queue that is away stops nothing: requests are answered with 503 until it is back.
 * @param logging where the log goes; standard output when omitted
 */
export async function createManagement(
  settings: Settings,
  logging: Pick<LoggerOptions, 'destination'> = {},
): Promise<Management> {
  const service = 'management';
  const logger = createLogger({ service, level: settings.logLevel, ...logging });
  const lifecycle = new Lifecycle({ logger });
  const health = createHealth({ lifecycle, logger });
  const registry = createMetricsRegistry({ service });
  const secrets = createSecretBox(settings.encryptionKeys);
  const guard = createAddressGuard(settings.egressAllowCidrs);

  try {
    const database = openDatabase({
      url: settings.databaseUrl,
      onConnectionError: (err) => logger.warn({ err }, 'an idle database connection broke'),
    });
    lifecycle.onClose('database', () => database.close());
    health.register('database', 'ready', async () => {
      await runStatement(database.pool, 'SELECT 1', []);
    });

    const queueBackend = createQueueBackend(settings.queueUrl);
    const onQueueError = (err: Error) => logger.warn({ err }, 'the queue connection has trouble');
    const deliveryQueue = openDeliveryQueue(queueBackend, onQueueError);
    lifecycle.onClose('delivery queue', () => deliveryQueue.close());
    const eventQueue = openEventQueue(queueBackend, onQueueError);
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

    const relay = createRelay({ pool: database.pool, events: eventQueue, logger });
    lifecycle.onClose('relay', () => relay.stop());

    const { pool } = database;
    const sessions = createConsoleSessions({
      pool,
      idleMinutes: settings.consoleSessionIdleMinutes,
      maxHours: settings.consoleSessionMaxHours,
    });
    const signIn = createSignIn({
      pool,
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
      ...subscriptionEndpoints({ pool, secrets, urlProblem: guard.urlProblem, egress, deliveryTimeoutMs }),
      ...deliveryEndpoints({ pool, deliveryQueue, deliveryMaxRetries }),
      ...jobsEndpoints(database),
      ...runsEndpoints(createRuns({ pool, relay })),
      ...accountsEndpoints({ pool }),
      rotateApiKeyEndpoint({ pool, secrets }),
      ...sessionEndpoints({ pool, sessions, signIn }),
      profileEndpoint({ pool, secrets }),
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
      runUntilSignal: () => lifecycle.runUntilSignal(),
    };
  } catch (error) {
    await lifecycle.close('it could not start');
    throw error;
  }
}
