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
} from '@runhook/runtime';
import { findPrincipal } from './data/principals.ts';
import { createRuns } from './data/runs.ts';
import { createHttpApp } from './http/create-http-app.ts';
import { listen } from './http/listen.ts';
import { deliveryEndpoints } from './http/routes/deliveries/endpoints.ts';
import { jobsEndpoints } from './http/routes/jobs.ts';
import { runsEndpoints } from './http/routes/runs.ts';
import { subscriptionEndpoints } from './http/routes/subscriptions/endpoints.ts';
import { createRelay } from './relay/relay.ts';
import { SECRET_SETTINGS, type Settings } from './settings.ts';

/** What the requests in flight may need beyond the longest of them, a test of an endpoint. */
const DRAIN_MARGIN_MS = 10_000;

export interface Management {
  port: number;
  close(): Promise<void>;
  /** Waits for a stop signal, closes, and resolves with the exit code. */
  runUntilSignal(): Promise<number>;
}

/**
 * The management service, listening. Opens its resources in the order below and closes them in reverse. A database or
 * queue that is away stops nothing: requests are answered with 503 until it is back.
 */
export async function createManagement(settings: Settings): Promise<Management> {
  const service = 'management';
  const logger = createLogger({ service, level: settings.logLevel });
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

    const egress = createEgress({
      allowCidrs: settings.egressAllowCidrs,
      timeoutMs: settings.deliveryTimeoutMs,
    });
    lifecycle.onClose('egress', () => egress.close());

    const relay = createRelay({ pool: database.pool, events: eventQueue, logger });
    lifecycle.onClose('relay', () => relay.stop());

    const { pool } = database;
    const { deliveryTimeoutMs, deliveryMaxRetries } = settings;
    const app = createHttpApp({
      endpoints: [
        ...subscriptionEndpoints({ pool, secrets, urlProblem: guard.urlProblem, egress, deliveryTimeoutMs }),
        ...deliveryEndpoints({ pool, deliveryQueue, deliveryMaxRetries }),
        ...jobsEndpoints(database),
        ...runsEndpoints(createRuns({ pool, relay })),
      ],
      findPrincipal: (credential) => findPrincipal(pool, credential),
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
      close: () => lifecycle.close('closed by its owner'),
      runUntilSignal: () => lifecycle.runUntilSignal(),
    };
  } catch (error) {
    await lifecycle.close('it could not start');
    throw error;
  }
}
