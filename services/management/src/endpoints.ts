import { createSecretBox, type Pool, type RecordWrites } from '@runhook/database';
import type { PrismaDatabase } from '@runhook/database/prisma';
import { createAddressGuard, type Egress, egressRules } from '@runhook/egress';
import type { DeliveryQueue } from '@runhook/queue';
import type { Clock, Logger, Traces } from '@runhook/runtime';
import { auditEndpoint } from './audit/routes.ts';
import { accountLogEndpoints } from './deliveries/account-log-routes.ts';
import { incidentsEndpoint } from './deliveries/incidents.ts';
import { ratesEndpoint } from './deliveries/rates.ts';
import { recoveryEndpoints } from './deliveries/recover.ts';
import { redeliverEndpoint } from './deliveries/redeliver.ts';
import { deliveryEndpoints } from './deliveries/routes.ts';
import { serviceStateEndpoint } from './deliveries/service-state.ts';
import { statisticsEndpoint } from './deliveries/statistics.ts';
import { AccountBulkhead, bulkheadLimits } from './http/account-bulkhead.ts';
import { DEADLINE_MS, type Endpoint } from './http/endpoint.ts';
import { createIdempotency } from './http/idempotency.ts';
import type { LimitStore } from './http/limits.ts';
import type { ReplicaReads } from './http/replica-reads.ts';
import type { RouterDependencies } from './http/router.ts';
import { accountsEndpoints } from './identity/accounts.ts';
import { profileEndpoint, rotateApiKeyEndpoint } from './identity/api-key.ts';
import { findPrincipal, PrincipalCache } from './identity/find-principal.ts';
import { jobsEndpoints } from './jobs/routes.ts';
import type { ManagementMetrics } from './metrics.ts';
import { openOidc, withoutPasswords } from './oidc/open-oidc.ts';
import { oidcSettings } from './oidc/settings.ts';
import { publishEndpoint } from './runs/publish-routes.ts';
import { createPublishedEvents } from './runs/published-events.ts';
import type { Relay } from './runs/relay.ts';
import { runsEndpoints } from './runs/routes.ts';
import { createRuns } from './runs/runs.ts';
import { createConsoleSessions } from './sessions/console-sessions.ts';
import { createDeviceCookies } from './sessions/device-cookies.ts';
import { createPasswordCheck } from './sessions/password-check.ts';
import { SESSION, sessionEndpoints } from './sessions/routes.ts';
import { createSignIn } from './sessions/sign-in.ts';
import { addressNetwork, createSignInLimits, WINDOW_SECONDS } from './sessions/sign-in-limits.ts';
import type { Settings } from './settings.ts';
import { type ChangeStreams, changesEndpoint } from './subscriptions/changes.ts';
import { finishRotationEndpoint, rotateSecretEndpoint } from './subscriptions/rotate-secret.ts';
import { subscriptionEndpoints } from './subscriptions/routes.ts';
import { testSubscriptionEndpoint, testUnsavedEndpoint } from './subscriptions/test-endpoint.ts';

const REQUEST_LIMIT_WINDOW_SECONDS = 60;

export interface EndpointDependencies {
  logger: Logger;
  metrics: ManagementMetrics;
  /** Null unless traces are exported. */
  traces: Traces | null;
  database: PrismaDatabase;
  /** For reports of runs, which are recorded in batches. */
  reportPool: Pool;
  reads: ReplicaReads;
  deliveryQueue: DeliveryQueue;
  limitStore: LimitStore;
  egress: Pick<Egress, 'post'>;
  relay: Relay;
  /** Tracks whether the record can be written. */
  writes: Pick<RecordWrites, 'track' | 'state'>;
  /** Clock of PostgreSQL. */
  clock: Clock;
  changes: ChangeStreams;
  timeouts: {
    /** Time for the admission of a request, and again for its work; {@link DEADLINE_MS} when omitted. */
    requestMs?: number | undefined;
    /** Time a committed redelivery waits for the queue to accept its job. */
    queueMs?: number | undefined;
    /** Time the body of a request may take to arrive. */
    bodyMs?: number | undefined;
    /** Time for which an answer of the identity provider about a user's access is valid; a minute when omitted. */
    oidcCheckMs?: number | undefined;
  };
}

/** Creates every endpoint, and the components by which the router admits requests. */
export function createEndpoints(
  settings: Settings,
  deps: EndpointDependencies,
): { endpoints: Endpoint[]; routing: RouterDependencies } {
  const {
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
  } = deps;
  const { prisma, pool } = database;
  const secrets = createSecretBox(settings.encryptionKeys);
  const guard = createAddressGuard(egressRules(settings));
  const sessions = createConsoleSessions({
    prisma,
    idleMinutes: settings.consoleSessionIdleMinutes,
    maxHours: settings.consoleSessionMaxHours,
  });
  const signIn = createSignIn({
    prisma,
    sessions,
    passwords: createPasswordCheck(),
    limits: createSignInLimits(limitStore, {
      perEmailMax: settings.signInAttemptsPerEmail,
      perAddressMax: settings.signInAttemptsPerAddress,
    }),
  });
  const passwordSignIn = settings.passwordSignIn === 'on';
  const oidc = openOidc(oidcSettings(settings), {
    pool,
    prisma,
    secrets,
    sessions,
    logger,
    passwordSignIn,
    limiter: limitStore.createLimiter({
      name: 'sign-in-oidc',
      callsMax: settings.signInAttemptsPerAddress,
      windowSeconds: WINDOW_SECONDS,
      rejectsFromMemory: false,
    }),
    networkOf: addressNetwork,
    maxHours: settings.consoleSessionMaxHours,
    checkMs: timeouts.oidcCheckMs,
  });
  const reportDependencies = {
    pool,
    reportPool,
    relay,
    onAccepted: (count: number) => metrics.accepted.inc(count),
    ...(traces && { traceContext: () => traces.serializeContext() }),
  };
  const runs = createRuns({ ...reportDependencies, nowMs: () => clock.nowMs() });
  const publishedEvents = createPublishedEvents(reportDependencies);
  const principals = new PrincipalCache((credential) => findPrincipal(pool, credential));
  const { deliveryTimeoutMs, deliveryMaxRetries } = settings;
  const passwordEndpoints = sessionEndpoints({
    prisma,
    sessions,
    signIn,
    deviceCookies: createDeviceCookies(settings.encryptionKeys),
  });
  const endpoints = [
    ...subscriptionEndpoints({
      prisma,
      secrets,
      urlProblem: guard.urlProblem,
      subscriptionsMax: settings.subscriptionsPerAccount,
    }),
    rotateSecretEndpoint({ prisma, secrets }),
    finishRotationEndpoint({ prisma }),
    testSubscriptionEndpoint({ prisma, secrets, egress, deliveryTimeoutMs, logger }),
    testUnsavedEndpoint({
      prisma,
      secrets,
      egress,
      deliveryTimeoutMs,
      logger,
      urlProblem: guard.urlProblem,
    }),
    changesEndpoint(changes),
    ...deliveryEndpoints({ prisma, pool, reads }),
    ...accountLogEndpoints({ pool, reads }),
    redeliverEndpoint({
      prisma,
      pool,
      deliveryQueue,
      deliveryMaxRetries,
      logger,
      enqueueTimeoutMs: timeouts.queueMs,
    }),
    ...recoveryEndpoints({ prisma }),
    statisticsEndpoint({ prisma, reads }),
    ratesEndpoint({ prisma, reads }),
    incidentsEndpoint({ prisma, reads }),
    serviceStateEndpoint({ prisma, writes }),
    ...jobsEndpoints({ prisma }),
    ...runsEndpoints(runs, reads),
    publishEndpoint({ publishedEvents, retentionDays: settings.logRetentionDays, clock }),
    ...accountsEndpoints({ prisma }),
    auditEndpoint({ prisma }),
    rotateApiKeyEndpoint({ prisma, secrets }),
    ...(passwordSignIn ? passwordEndpoints : withoutPasswords(passwordEndpoints, SESSION)),
    ...oidc.endpoints,
    profileEndpoint({ prisma, secrets }),
  ];
  const { requestMs = DEADLINE_MS } = timeouts;
  const bulkhead = new AccountBulkhead({
    ...bulkheadLimits(pool.options.max ?? 10),
    maxInFlight: settings.apiConcurrencyPerAccount,
    waitMs: requestMs,
    onRejected: () => metrics.rejectedRequests.inc(),
  });
  metrics.measureWaiting(() => bulkhead.waitingCount);
  return {
    endpoints,
    routing: {
      reads,
      writes,
      deadlineMs: requestMs,
      bodyMs: timeouts.bodyMs,
      bulkhead,
      ...oidc.withAccessCheck({
        findPrincipal: (credential, isVersionChecked) => principals.find(credential, isVersionChecked),
        findSession: (sessionId) => sessions.find(sessionId),
      }),
      requestLimit: limitStore.createLimiter({
        name: 'requests',
        callsMax: settings.apiRateLimitPerMinute,
        windowSeconds: REQUEST_LIMIT_WINDOW_SECONDS,
        rejectsFromMemory: true,
      }),
      idempotency: createIdempotency({
        pool,
        secrets,
        onError: (err) => logger.warn({ err }, 'Idempotency-Key not released at once'),
      }),
    },
  };
}
