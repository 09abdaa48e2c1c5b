import { createSecretBox, type Database, type RecordWrites, type SecretBox } from '@runhook/database';
import { clientCertificateOf, type Egress, egressRules } from '@runhook/egress';
import { createEgress } from '@runhook/egress/client';
import type { DeliveryQueue } from '@runhook/queue';
import type { Clock, Lifecycle, Logger } from '@runhook/runtime';
import { DeliveryEnqueuer } from './enqueue.ts';
import { EventsInFlight } from './policy/events-in-flight.ts';
import type { RetryPolicy } from './policy/outcome.ts';
import { RequestsInFlight } from './policy/requests-in-flight.ts';
import { SubscriptionLimiter } from './policy/subscription-limiter.ts';
import { DispatchRecord } from './record/dispatch-record.ts';
import { MessageSteps } from './record/message-steps.ts';
import type { Quarantine } from './record/quarantine.ts';
import type { DispatcherSettings } from './settings.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { Spans } from './telemetry/spans.ts';

/** Dependencies of an event's path from the worker to the endpoint and the log. */
export interface Dispatcher {
  record: DispatchRecord;
  messageSteps: MessageSteps;
  quarantine: Quarantine;
  queue: DeliveryEnqueuer;
  egress: Egress;
  secrets: SecretBox;
  retryPolicy: RetryPolicy;
  /** Limits the attempts in flight of each subscription. */
  limits: SubscriptionLimiter;
  /** Number of deferred deliveries of an account beyond which lanes become full; see `CachedSubscription.isFull`. */
  pendingMax: number;
  /** Maximum duration of an attempt in milliseconds. */
  attemptMs: number;
  /** Address of the console, for links in messages; null if `PUBLIC_URL` is not set. */
  consoleUrl: string | null;
  /** The clock of PostgreSQL, by which deliveries are due. */
  clock: Clock;
  /** Aborted when the workers close. */
  stopping: AbortSignal;
  /** Fan-outs in progress, by the `eventJobId` of the event; each promise settles when its fan-out ends. */
  fanOutsInFlight: Map<string, Promise<unknown>>;
  events: EventsInFlight;
  requests: RequestsInFlight;
  metrics: DispatcherMetrics;
  spans: Spans;
  logger: Logger;
}

export interface DispatcherParts {
  settings: Pick<
    DispatcherSettings,
    | 'egressAllowCidrs'
    | 'egressDenyCidrs'
    | 'egressPorts'
    | 'egressRequireHttps'
    | 'egressClientCert'
    | 'egressClientKey'
    | 'deliveryTimeoutMs'
    | 'encryptionKeys'
    | 'deliveryMaxRetries'
    | 'retryBaseDelayMs'
    | 'deliveryConcurrency'
    | 'pendingDeliveriesPerAccount'
    | 'runStepsBytesPerAccount'
    | 'smtpUrl'
    | 'publicUrl'
  >;
  lifecycle: Lifecycle;
  /** Ends the waits for an unavailable database or queue; jobs then plan no more requests. */
  stopping: AbortSignal;
  /** Ends the wait for a database that does not accept the result of an attempt; aborted later than `stopping`. */
  drainEnd: AbortSignal;
  database: Database;
  writes: Pick<RecordWrites, 'track'>;
  clock: Clock;
  deliveryQueue: DeliveryQueue;
  quarantine: Quarantine;
  metrics: DispatcherMetrics;
  spans: Spans;
  logger: Logger;
}

export function openDispatcher(parts: DispatcherParts): Dispatcher {
  const { settings, lifecycle, stopping, drainEnd, database, clock, deliveryQueue, quarantine } = parts;
  const { writes, metrics, spans, logger } = parts;
  const egress = createEgress({
    ...egressRules(settings),
    timeoutMs: settings.deliveryTimeoutMs,
    clientCertificate: clientCertificateOf(settings),
  });
  lifecycle.onClose('egress', () => egress.close());
  const record = new DispatchRecord({
    pool: database.pool,
    writes,
    stopping,
    drainEnd,
    metrics,
    logger,
    quarantine,
    shouldNotifyAdmins: settings.smtpUrl !== undefined,
  });
  lifecycle.onClose('subscription statuses', () => record.close());
  const requests = new RequestsInFlight(settings.deliveryConcurrency);
  return {
    record,
    messageSteps: new MessageSteps({
      pool: database.pool,
      accountBytesMax: settings.runStepsBytesPerAccount,
      stopping,
      metrics,
      logger,
    }),
    quarantine,
    queue: new DeliveryEnqueuer({ deliveryQueue, stopping, metrics, spans, logger }),
    egress,
    secrets: createSecretBox(settings.encryptionKeys),
    retryPolicy: { retriesMax: settings.deliveryMaxRetries, baseDelayMs: settings.retryBaseDelayMs },
    limits: new SubscriptionLimiter({
      requests,
      retryBaseDelayMs: settings.retryBaseDelayMs,
    }),
    pendingMax: settings.pendingDeliveriesPerAccount,
    attemptMs: settings.deliveryTimeoutMs,
    consoleUrl: settings.publicUrl ?? null,
    clock,
    stopping,
    fanOutsInFlight: new Map(),
    events: new EventsInFlight(settings.deliveryConcurrency),
    requests,
    metrics,
    spans,
    logger,
  };
}
