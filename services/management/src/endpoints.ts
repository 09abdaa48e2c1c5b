import type { ArtifactStore } from '@runhook/artifacts';
import { createSecretBox, type Pool, type RecordWrites } from '@runhook/database';
import type { PrismaDatabase } from '@runhook/database/prisma';
import { createAddressGuard, type Egress, egressRules } from '@runhook/egress';
import type { DeliveryQueue, RunRequestQueue } from '@runhook/queue';
import type { Clock, Logger, Traces } from '@runhook/runtime';
import { Artifacts } from './artifacts/artifacts.ts';
import { artifactEndpoints } from './artifacts/routes.ts';
import { auditEndpoints } from './audit/routes.ts';
import { accountLogEndpoints } from './deliveries/account-log-routes.ts';
import { incidentsEndpoint } from './deliveries/incidents.ts';
import { previewEndpoint } from './deliveries/preview.ts';
import { ratesEndpoint } from './deliveries/rates.ts';
import { recoveryEndpoints } from './deliveries/recover.ts';
import { redeliverEndpoint } from './deliveries/redeliver.ts';
import { deliveryEndpoints } from './deliveries/routes.ts';
import { serviceStateEndpoint } from './deliveries/service-state.ts';
import { statisticsEndpoint } from './deliveries/statistics.ts';
import { type FeedDependencies, feedEndpoint } from './feed/routes.ts';
import { createAccountBudgets } from './http/account-budgets.ts';
import { createBaseUrl } from './http/base-url.ts';
import { Bulkhead } from './http/bulkhead.ts';
import { addressNetwork } from './http/client-network.ts';
import { DEADLINE_MS, type Endpoint } from './http/endpoint.ts';
import { createIdempotency } from './http/idempotency.ts';
import type { LimitStore } from './http/limits.ts';
import type { ReplicaReads } from './http/replica-reads.ts';
import type { RouterDependencies } from './http/router.ts';
import { accountsEndpoints } from './identity/accounts.ts';
import { profileEndpoint, rotateApiKeyEndpoint } from './identity/api-key.ts';
import { findPrincipal, PrincipalCache } from './identity/find-principal.ts';
import type { TokenUses } from './identity/token-uses.ts';
import { tokensEndpoint } from './identity/tokens.ts';
import { whoAmIEndpoints } from './identity/whoami.ts';
import { jobsEndpoints } from './jobs/routes.ts';
import type { ManagementMetrics } from './metrics.ts';
import { type Oidc, openOidc, withoutPasswords } from './oidc/open-oidc.ts';
import { oidcSettings } from './oidc/settings.ts';
import { claimEndpoints } from './runs/claim-routes.ts';
import { publishEndpoint } from './runs/publish-routes.ts';
import { createPublishedEvents } from './runs/published-events.ts';
import { runReadEndpoints } from './runs/read-routes.ts';
import type { Relay } from './runs/relay.ts';
import { runsEndpoints } from './runs/routes.ts';
import { renewLease } from './runs/run-requests.ts';
import type { RunWaits } from './runs/run-waits.ts';
import { createRuns } from './runs/runs.ts';
import { runStepsEndpoints } from './runs/step-routes.ts';
import { triggerEndpoints } from './runs/trigger-routes.ts';
import { createTriggers } from './runs/triggers.ts';
import { CHANGE_PASSWORD, changePasswordEndpoint } from './sessions/change-password.ts';
import { createConsoleSessions } from './sessions/console-sessions.ts';
import { createDeviceCookies } from './sessions/device-cookies.ts';
import { ownSessionsEndpoints } from './sessions/own-sessions.ts';
import { createPasswordCheck } from './sessions/password-check.ts';
import { SESSION, sessionEndpoints } from './sessions/routes.ts';
import { createSignIn } from './sessions/sign-in.ts';
import type { SignInFailures } from './sessions/sign-in-failures.ts';
import { createSignInLimits, WINDOW_SECONDS } from './sessions/sign-in-limits.ts';
import type { Settings } from './settings.ts';
import { type ChangeStreams, changesEndpoint } from './subscriptions/changes.ts';
import { PUBLIC_KEYS_LIMIT, publicKeysEndpoint } from './subscriptions/public-keys.ts';
import {
  finishRotationEndpoint,
  rotateSecretEndpoint,
  rotateSignatureKeyEndpoint,
} from './subscriptions/rotate-secret.ts';
import { subscriptionEndpoints } from './subscriptions/routes.ts';
import {
  testStoredEndpoint,
  testSubscriptionEndpoint,
  testUnsavedEndpoint,
} from './subscriptions/test-endpoint.ts';

const REQUEST_LIMIT_WINDOW_SECONDS = 60;
/** Endpoints that are a 403 while passwords are switched off. */
const PASSWORD_ROUTES = [`POST ${SESSION}`, `PUT ${CHANGE_PASSWORD}`];
/** The time for which a response with an `Idempotency-Key` is stored. */
const KEY_LIMIT_WINDOW_SECONDS = 86_400;

export interface EndpointDependencies {
  logger: Logger;
  metrics: ManagementMetrics;
  /** Null unless traces are exported. */
  traces: Traces | null;
  database: PrismaDatabase;
  /** For reports of runs, which are recorded in batches. */
  reportPool: Pool;
  /** For artifacts, whose transfers must not delay other requests. */
  artifactPool: Pool;
  artifactStore: ArtifactStore;
  reads: ReplicaReads;
  deliveryQueue: DeliveryQueue;
  runRequestQueue: Pick<RunRequestQueue, 'add'>;
  runWaits: RunWaits;
  /** Components that read the feed. */
  feed: Pick<FeedDependencies, 'database' | 'state' | 'waits'>;
  limitStore: LimitStore;
  egress: Pick<Egress, 'post'>;
  relay: Relay;
  signInFailures: Pick<SignInFailures, 'record'>;
  /** Tracks whether the record can be written. */
  writes: Pick<RecordWrites, 'track' | 'state'>;
  /** Clock of PostgreSQL. */
  clock: Clock;
  changes: ChangeStreams;
  tokenUses: Pick<TokenUses, 'add'>;
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

/**
 * Slots of the reads of callers, by credential: a flood of requests with one credential is admitted two at a time, and
 * the requests of others overtake it. Each read takes less than a millisecond of a connection.
 */
const AUTHENTICATION = { slotsMax: 4, shareMax: 2, maxInFlight: Number.POSITIVE_INFINITY };

/** Creates every endpoint, the components by which the router admits requests, and the check of users' access. */
export function createEndpoints(
  settings: Settings,
  deps: EndpointDependencies,
): { endpoints: Endpoint[]; routing: RouterDependencies; hasAccess: Oidc['hasAccess'] } {
  const {
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
  } = deps;
  const { prisma, pool } = database;
  const secrets = createSecretBox(settings.encryptionKeys);
  const guard = createAddressGuard(egressRules(settings));
  const sessions = createConsoleSessions({
    prisma,
    idleMinutes: settings.consoleSessionIdleMinutes,
    maxHours: settings.consoleSessionMaxHours,
  });
  const passwords = createPasswordCheck();
  const signInLimits = createSignInLimits(limitStore, {
    perEmailMax: settings.signInAttemptsPerEmail,
    perAddressMax: settings.signInAttemptsPerAddress,
  });
  const signIn = createSignIn({
    prisma,
    sessions,
    passwords,
    limits: signInLimits,
    onFailure: (failure) => signInFailures.record(failure),
  });
  const deviceCookies = createDeviceCookies(settings.encryptionKeys);
  const passwordSignIn = settings.passwordSignIn === 'on';
  const oidc = openOidc(oidcSettings(settings), {
    pool,
    prisma,
    secrets,
    sessions,
    logger,
    failures: metrics.signInFailures,
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
  const stepsBytesMax = settings.runStepsBytesPerAccount;
  const runs = createRuns({ ...reportDependencies, stepsBytesMax, nowMs: () => clock.nowMs() });
  const artifacts = new Artifacts({
    pool: artifactPool,
    store: artifactStore,
    accountMbMax: settings.artifactsMbPerAccount,
    renewLease,
    log: logger,
  });
  const publishedEvents = createPublishedEvents(reportDependencies);
  const { requestMs = DEADLINE_MS } = timeouts;
  const authentications = new Bulkhead<string>({ ...AUTHENTICATION, waitMs: requestMs });
  const principals = new PrincipalCache((credential) =>
    authentications.run(credential, () => findPrincipal(pool, credential)),
  );
  const { deliveryTimeoutMs, deliveryMaxRetries } = settings;
  const { publicUrl } = settings;
  const baseUrl = createBaseUrl(publicUrl);
  const triggers = createTriggers({
    pool,
    idPool: reportPool,
    onTriggered({ account_id: accountId, id: runId, job_id: jobId }) {
      runWaits.notify(accountId);
      // Maintenance adds the jobs of committed runs that are missing.
      runRequestQueue.add([{ accountId, runId, jobId, attempt: 1 }]).catch((err: unknown) => {
        logger.warn({ err }, 'triggered run not added to the queue, left to maintenance');
      });
    },
  });
  const consoleUrl = publicUrl ?? null;
  const testDependencies = { prisma, secrets, egress, deliveryTimeoutMs, logger, consoleUrl };
  const passwordEndpoints = [
    ...sessionEndpoints({ prisma, sessions, signIn, deviceCookies, publicUrl }),
    changePasswordEndpoint({ prisma, passwords, limits: signInLimits, deviceCookies }),
  ];
  const endpoints = [
    ...subscriptionEndpoints({
      prisma,
      secrets,
      urlProblem: guard.urlProblem,
      subscriptionsMax: settings.subscriptionsPerAccount,
      deliveryQueue,
    }),
    rotateSecretEndpoint({ prisma, secrets }),
    rotateSignatureKeyEndpoint({ prisma, secrets }),
    finishRotationEndpoint({ prisma }),
    publicKeysEndpoint({ prisma, limit: limitStore.createLimiter(PUBLIC_KEYS_LIMIT) }),
    testSubscriptionEndpoint(testDependencies),
    testStoredEndpoint(testDependencies),
    testUnsavedEndpoint({ ...testDependencies, urlProblem: guard.urlProblem }),
    previewEndpoint({ reads, clock, pendingMax: settings.pendingDeliveriesPerAccount }),
    changesEndpoint(changes),
    feedEndpoint({ prisma, ...feed }),
    ...deliveryEndpoints({ prisma, pool, reads, consoleUrl }),
    ...accountLogEndpoints({ pool, reads }),
    redeliverEndpoint({
      prisma,
      pool,
      deliveryQueue,
      deliveryMaxRetries,
      logger,
      enqueueTimeoutMs: timeouts.queueMs,
    }),
    ...recoveryEndpoints({ prisma, pool, deliveryQueue }),
    statisticsEndpoint({ prisma, reads }),
    ratesEndpoint({ prisma, reads }),
    incidentsEndpoint({ prisma, reads }),
    serviceStateEndpoint({ prisma, writes, sourceAddresses: settings.egressSourceAddresses, consoleUrl }),
    ...jobsEndpoints({ prisma, reads, baseUrl, jobsMax: settings.jobsPerAccount }),
    // Before the paths of one run, which match `runs/claim` as well.
    ...claimEndpoints({ pool, runs, waits: runWaits, baseUrl }),
    ...triggerEndpoints({ runs, triggers, waits: runWaits, baseUrl }),
    ...runsEndpoints({
      runs,
      baseUrl,
      confirmStored: (accountId, runId) => artifacts.confirmStored(accountId, runId),
    }),
    ...runReadEndpoints({ runs, reads, prisma, pool, baseUrl }),
    ...runStepsEndpoints({ pool, stepsBytesMax }),
    ...artifactEndpoints(artifacts, artifactPool),
    publishEndpoint({ publishedEvents, retentionDays: settings.logRetentionDays, clock }),
    ...accountsEndpoints({ prisma }),
    ...whoAmIEndpoints({ prisma }),
    ...auditEndpoints({ prisma }),
    rotateApiKeyEndpoint({ prisma, secrets }),
    tokensEndpoint({ prisma }),
    ...(passwordSignIn ? passwordEndpoints : withoutPasswords(passwordEndpoints, PASSWORD_ROUTES)),
    ...ownSessionsEndpoints({ prisma, idleMinutes: settings.consoleSessionIdleMinutes, publicUrl }),
    ...oidc.endpoints,
    profileEndpoint({ prisma, secrets }),
  ];
  return {
    endpoints,
    hasAccess: oidc.hasAccess,
    routing: {
      reads,
      writes,
      deadlineMs: requestMs,
      bodyMs: timeouts.bodyMs,
      budgets: createAccountBudgets({
        connectionsMax: pool.options.max ?? 10,
        maxInFlight: settings.apiConcurrencyPerAccount,
        waitMs: requestMs,
        metrics,
      }),
      ...oidc.withAccessCheck({
        findPrincipal: async (credential, isVersionChecked) => {
          const found = await principals.find(credential, isVersionChecked);
          if (found?.principal.kind === 'service_token') tokenUses.add(found.principal.tokenId);
          return found;
        },
        findSession: (sessionId) => authentications.run(sessionId, () => sessions.find(sessionId)),
      }),
      requestLimit: limitStore.createLimiter({
        name: 'requests',
        callsMax: settings.apiRateLimitPerMinute,
        windowSeconds: REQUEST_LIMIT_WINDOW_SECONDS,
        rejectsFromMemory: true,
      }),
      keyLimit: limitStore.createLimiter({
        name: 'idempotency_keys',
        callsMax: settings.idempotencyKeysPerDay,
        windowSeconds: KEY_LIMIT_WINDOW_SECONDS,
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
