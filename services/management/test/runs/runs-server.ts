import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Plan } from '@runhook/contract';
import {
  createAccount,
  createJob,
  createServiceToken,
  type JobView,
  openDatabase,
  type PermissionSet,
  type Pool,
  type RecordWrites,
} from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import { createTestDatabase, testSecrets, WAIT_TIMEOUT_MS } from '@runhook/testing';
import type { AccountBudgets } from '../../src/http/account-budgets.ts';
import { createBaseUrl } from '../../src/http/base-url.ts';
import { createIdempotency } from '../../src/http/idempotency.ts';
import { ReplicaReads } from '../../src/http/replica-reads.ts';
import { createHttpApp } from '../../src/http/server.ts';
import { findPrincipal, PrincipalCache } from '../../src/identity/find-principal.ts';
import { jobsEndpoints } from '../../src/jobs/routes.ts';
import { claimEndpoints } from '../../src/runs/claim-routes.ts';
import { runReadEndpoints } from '../../src/runs/read-routes.ts';
import type { CommittedEvent } from '../../src/runs/relay.ts';
import { runsEndpoints } from '../../src/runs/routes.ts';
import { RunWaits } from '../../src/runs/run-waits.ts';
import { createRuns, type Runs, type RunsDependencies } from '../../src/runs/runs.ts';
import { runStepsEndpoints } from '../../src/runs/step-routes.ts';
import { triggerEndpoints } from '../../src/runs/trigger-routes.ts';
import { createTriggers } from '../../src/runs/triggers.ts';
import { checkedFetch } from '../checked-fetch.ts';

export interface RunsServer {
  /** With the role of a superuser. */
  database: PrismaDatabase;
  databaseUrl: string;
  accountId: number;
  /** Token of the account with the permission set `job_runner`. */
  token: string;
  /** The service that the endpoints call. */
  runs: Runs;
  waits: RunWaits;
  /** Main pool of the service, with the role of management. */
  servicePool: Pool;
  /** Pool that records reports in batches. */
  reportPool: Pool;
  /** Returns the number of events that were handed to the relay. */
  relayed(): number;
  /** Returns the number of events of each handover. */
  relayedEvents(): number[];
  /** `path` follows the account: `/runs/`. A string body is sent unchanged. */
  call(
    method: string,
    path: string,
    body?: unknown,
    token?: string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; json: Json }>;
  /** Sends a request, by default a GET, to a path that follows the account. */
  fetch(path: string, request?: RequestInit): Promise<Response>;
  otherAccount(plan: Plan): Promise<{ id: number; token: string }>;
  tokenWith(permissionSets: PermissionSet[]): Promise<string>;
  createJob(name: string, accountId?: number): Promise<JobView>;
  /** Returns the numbers of stored runs and events, and of events handed to the relay. */
  written(): Promise<{ runs: number; events: number; relayed: number }>;
  /** Returns the stored events in the order in which they were handed to the relay. */
  sentEvents(): Promise<SentEvent[]>;
  close(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: an answer as a client reads it
export type Json = any;

/** Removes the durations of a run, which grow while it is in progress. */
export function withoutDurations(run: Json): Json {
  return Object.fromEntries(Object.entries(run).filter(([name]) => !name.includes('duration')));
}

export interface SentEvent {
  eventId: string;
  accountId: number;
  eventType: string;
  timestamp: string;
  /** The stored text, including the order of keys. */
  data: string;
}

/** Replaces the tracking of writes, which these tests do not need. */
const UNTRACKED_WRITES: Pick<RecordWrites, 'track'> = { track: (_, work) => work() };

/** Replaces the budgets of accounts. */
const NO_BUDGET: AccountBudgets['slowReads'] = { run: (_, work) => work() };

/** Starts the endpoints of jobs and runs on a socket, with their own database and an account on the free plan. */
export async function startRunsServer(
  options: Partial<Pick<RunsDependencies, 'relay' | 'nowMs' | 'stepsBytesMax'>> & {
    /** Number of runners of an account that may wait. */
    waitsMax?: number;
    writes?: Pick<RecordWrites, 'track'>;
  } = {},
): Promise<RunsServer> {
  const testDatabase = await createTestDatabase();
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  const { prisma } = database;
  const ofService = openPrismaDatabase({
    url: testDatabase.managementUrl,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  const { pool } = ofService;
  const reports = openDatabase({
    url: testDatabase.managementUrl,
    connectionsMax: 3,
    connectTimeoutMs: WAIT_TIMEOUT_MS,
  });
  const relayedEvents: (readonly CommittedEvent[])[] = [];
  const relay = {
    add(events: readonly CommittedEvent[]) {
      relayedEvents.push(events);
      options.relay?.add(events);
    },
  };
  const principals = new PrincipalCache((credential) => findPrincipal(pool, credential));
  const { stepsBytesMax = 1_000_000_000 } = options;
  const runs = createRuns({ pool, reportPool: reports.pool, stepsBytesMax, ...options, relay });
  const reads = new ReplicaReads(pool, null);
  const baseUrl = createBaseUrl(undefined);
  const { waitsMax = 100 } = options;
  const waits = new RunWaits({ database: pool, waitsMax: { all: waitsMax, perAccount: waitsMax } });
  const triggers = createTriggers({
    pool,
    idPool: reports.pool,
    onTriggered: ({ account_id: accountId }) => waits.notify(accountId),
  });
  const app = createHttpApp({
    endpoints: [
      ...jobsEndpoints({ ...ofService, reads, baseUrl, jobsMax: 1_000 }),
      ...claimEndpoints({ pool, runs, waits, baseUrl }),
      ...runsEndpoints({ runs, baseUrl }),
      ...triggerEndpoints({ runs, triggers, waits, baseUrl }),
      ...runReadEndpoints({ runs, reads, ...ofService, baseUrl }),
      ...runStepsEndpoints({ pool, stepsBytesMax }),
    ],
    routing: {
      reads,
      writes: options.writes ?? UNTRACKED_WRITES,
      findPrincipal: (credential, isChecked) => principals.find(credential, isChecked),
      findSession: async () => null,
      budgets: {
        requests: { ...NO_BUDGET, runWithoutSlot: NO_BUDGET.run },
        slowReads: NO_BUDGET,
        endpointTests: { ...NO_BUDGET, requireCapacity: () => undefined },
        largeBodies: NO_BUDGET,
        uploads: { ...NO_BUDGET, requireCapacity: () => undefined },
        downloads: NO_BUDGET,
      },
      requestLimit: { consume: async () => ({ kind: 'accepted' }) },
      keyLimit: { consume: async () => ({ kind: 'accepted' }) },
      idempotency: createIdempotency({ pool, secrets: testSecrets, onError: () => undefined }),
      deadlineMs: WAIT_TIMEOUT_MS,
    },
    baseUrl: createBaseUrl(undefined),
    trustedProxyCidrs: [],
    probes: async () => false,
    log: { info: () => {}, warn: () => {}, error: () => {} },
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function newAccount(plan: Plan): Promise<{ id: number; token: string }> {
    const { id } = await createAccount(prisma, { name: 'Acme', plan, deployment: 'multi_tenant' });
    const { token } = await createServiceToken(prisma, {
      accountId: id,
      name: 'runner',
      permissionSets: ['job_runner'],
    });
    return { id, token };
  }

  const { id: accountId, token } = await newAccount('free');
  return {
    database,
    databaseUrl: testDatabase.url,
    accountId,
    token,
    runs,
    waits,
    servicePool: pool,
    reportPool: reports.pool,
    relayed: () => relayedEvents.flat().length,
    relayedEvents: () => relayedEvents.map((events) => events.length),
    otherAccount: newAccount,
    fetch: (path, request) =>
      checkedFetch(`${origin}/api/v2/accounts/${accountId}${path}`, {
        ...request,
        headers: { authorization: `Token ${token}`, ...request?.headers },
      }),
    async call(method, path, body, withToken = token, headers = {}) {
      const response = await checkedFetch(`${origin}/api/v2/accounts/${accountId}${path}`, {
        method,
        headers: { authorization: `Token ${withToken}`, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      return { status: response.status, json: await response.json() };
    },
    tokenWith: async (permissionSets) =>
      (await createServiceToken(prisma, { accountId, name: 'another', permissionSets })).token,
    createJob: (name, targetAccountId = accountId) =>
      createJob(prisma, {
        accountId: targetAccountId,
        name,
        projectName: 'Analytics',
        environmentName: 'Production',
      }),
    written: async () => ({
      runs: await prisma.run.count(),
      events: await prisma.event.count(),
      relayed: relayedEvents.flat().length,
    }),
    async sentEvents() {
      const { rows } = await pool.query(
        `SELECT events.id AS "eventId", account_id::int AS "accountId", event_type AS "eventType", "timestamp",
           data
         FROM unnest($1::text[]) WITH ORDINALITY AS relayed (id, place) JOIN events USING (id) ORDER BY place`,
        [relayedEvents.flat().map(({ event }) => event.eventId)],
      );
      return rows.map((row) => ({
        ...row,
        timestamp: row.timestamp,
        data: JSON.stringify(row.data),
      }));
    },
    async close() {
      waits.close();
      server.close();
      server.closeAllConnections();
      await reports.close();
      await ofService.close();
      await database.close();
      await testDatabase.drop();
    },
  };
}
