import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createQueueBackend,
  type DeliveryQueue,
  type EventQueue,
  openDeliveryQueue,
  openEventQueue,
} from '@runhook/queue';
import { eventually, startTcpProxy, type TcpProxy, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { type RunningService, type ServiceOptions, startService } from '../services.ts';
import { CleanupStack } from './cleanup-stack.ts';
import { type Endpoint, startEndpoint } from './endpoint.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type BackendName, type Servers, type Stores, startServers } from './servers.ts';

/** `npm run chaos` sets CHAOS=long. In the short form a fault lasts just long enough to be noticed. */
export const isLong = process.env.CHAOS === 'long';

const RETRY_SETTINGS = { RETRY_BASE_DELAY_MS: '150', DELIVERY_TIMEOUT_MS: '2000' };
/** Default of `DELIVERY_MAX_RETRIES`, plus the first attempt. */
export const ATTEMPTS_MAX = 6;
/** Wait after a kill, because the receiver may not have read requests that were sent shortly before it. */
const SOCKET_DRAIN_MS = 50;
/** A timer that fires later than this shows that this process, which includes the receiver, is behind. */
const TIMER_DELAY_MAX_MS = 15;

/** Both services as processes, their servers and the endpoints: all parts in which faults are injected. */
export interface World<Of extends Stores = Servers> {
  backend: BackendName;
  servers: Of;
  endpoint: Endpoint;
  /** Connection of the test, independent of the services. */
  database: PrismaDatabase;
  queues: [EventQueue, DeliveryQueue];
  management: RunningService;
  dispatchers: RunningService[];
  /** Attempts that were sent and not in the log at a kill, by delivery. */
  inFlightAtKills: Map<string, number>;
  /** Time of the last kill, in milliseconds since the epoch. */
  killedAtMs: number;
  /** Time when the services were connected to another server of the record, in milliseconds since the epoch; 0 before. */
  recordReplacedAtMs: number;
  /** @param checkout folder in which another release was built */
  startManagement(checkout?: string): Promise<void>;
  /** Replaces the dispatcher with this index, which must have stopped. */
  startDispatcher(index: number, other?: OtherDispatcher): Promise<void>;
  /** Proxies between the services and their stores; null if they connect directly. */
  proxies: Proxies | null;
  /** Calls the functions, and notes how many attempts were in flight. */
  kill(...victims: (() => Promise<unknown>)[]): Promise<void>;
  /** Notes the arrivals that the log of another database lacks, which replaces the first one. */
  noteInFlight(database: PrismaDatabase): Promise<void>;
  close(): Promise<void>;
}

export interface Proxies {
  managementDatabase: TcpProxy;
  dispatcherDatabase: TcpProxy;
  dispatcherQueue: TcpProxy;
}

/** Describes a dispatcher that differs from the others. */
export interface OtherDispatcher extends ServiceOptions {
  environment?: Record<string, string>;
}

export interface WorldOptions {
  /** The services connect to their stores through proxies. */
  usesProxies?: boolean;
  /** Folder of another release, which all services use. */
  checkout?: string;
  /** Address that the endpoint listens on; 127.0.0.1 when omitted. */
  endpointHost?: string;
  /** Additional environment of every service. */
  environment?: Record<string, string>;
  /** Options of the first dispatcher only. */
  firstDispatcher?: OtherDispatcher;
}

export async function openWorld(
  backend: BackendName,
  random: SeededRandom,
  options: Pick<WorldOptions, 'usesProxies' | 'checkout'> = {},
): Promise<World> {
  const { checkout } = options;
  const migrations = checkout === undefined ? undefined : join(checkout, 'prisma', 'migrations');
  return await openWorldWith(await startServers(backend, migrations), backend, random, options);
}

/** Opens a world on running servers, which it closes. */
export async function openWorldWith<Of extends Stores>(
  servers: Of,
  backend: BackendName,
  random: SeededRandom,
  {
    usesProxies = false,
    checkout,
    endpointHost,
    environment: commonEnvironment = {},
    firstDispatcher = {},
  }: WorldOptions,
): Promise<World<Of>> {
  const cleanup = new CleanupStack();
  cleanup.add(() => servers.close());
  try {
    const endpoint = await startEndpoint(random, endpointHost);
    cleanup.add(() => endpoint.close());
    const database = openPrismaDatabase({
      url: servers.databaseUrl,
      connectTimeoutMs: WAIT_TIMEOUT_MS,
      onConnectionError: () => undefined,
    });
    cleanup.add(() => database.close());
    const queueBackend = createQueueBackend(servers.queueUrl);
    const queues: World['queues'] = [
      openEventQueue(queueBackend, () => undefined),
      openDeliveryQueue(queueBackend, () => undefined),
    ];
    cleanup.add(() => Promise.all(queues.map((queue) => queue.close())));
    const proxies = usesProxies ? await startProxies(servers) : null;
    cleanup.add(() => Promise.all(Object.values(proxies ?? {}).map((proxy) => proxy.close())));
    const managementEnvironment = {
      DATABASE_URL: proxies?.managementDatabase.url ?? servers.databaseUrl,
      QUEUE_URL: servers.queueUrl,
      ...RETRY_SETTINGS,
      ...commonEnvironment,
    };
    const dispatcherEnvironment = {
      DATABASE_URL: proxies?.dispatcherDatabase.url ?? servers.databaseUrl,
      QUEUE_URL: proxies?.dispatcherQueue.url ?? servers.queueUrl,
      ...RETRY_SETTINGS,
      ...commonEnvironment,
    };
    const firstEnvironment = { ...dispatcherEnvironment, ...firstDispatcher.environment };
    const [management, ...dispatchers] = await Promise.all([
      startService('management', managementEnvironment, { checkout }),
      startService('dispatcher', firstEnvironment, {
        checkout,
        commandPrefix: firstDispatcher.commandPrefix,
      }),
      startService('dispatcher', dispatcherEnvironment, { checkout }),
    ]);
    const noteUnlogged = (logged: Map<string, number>) => {
      for (const [key, count] of countUnloggedArrivals(endpoint, logged))
        world.inFlightAtKills.set(key, count);
    };
    const world: World<Of> = {
      backend,
      servers,
      endpoint,
      database,
      queues,
      management,
      dispatchers,
      inFlightAtKills: new Map(),
      killedAtMs: 0,
      recordReplacedAtMs: 0,
      startManagement: async (other) => {
        world.management = await startService('management', managementEnvironment, { checkout: other });
      },
      startDispatcher: async (index, { environment = {}, ...options } = {}) => {
        const merged = { ...dispatcherEnvironment, ...environment };
        world.dispatchers[index] = await startService('dispatcher', merged, options);
      },
      proxies,
      kill: async (...victims) => {
        const logged = await countLoggedAttempts(database);
        world.killedAtMs = Date.now();
        await Promise.all(victims.map((kill) => kill()));
        // Sockets of killed processes are closed; sockets of running processes do not show whether all sent data have been read.
        await (victims.length > world.dispatchers.length
          ? endpoint.waitUntilDisconnected()
          : waitUntilSocketsRead(endpoint));
        noteUnlogged(logged);
      },
      noteInFlight: async (other) => noteUnlogged(await countLoggedAttempts(other)),
      close: () => cleanup.run(),
    };
    cleanup.add(() => Promise.all([world.management, ...world.dispatchers].map((service) => service.stop())));
    return world;
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

async function startProxies({ databaseUrl, queueUrl }: Stores): Promise<Proxies> {
  const [managementDatabase, dispatcherDatabase, dispatcherQueue] = await Promise.all([
    startTcpProxy(databaseUrl),
    startTcpProxy(databaseUrl),
    startTcpProxy(queueUrl),
  ]);
  return { managementDatabase, dispatcherDatabase, dispatcherQueue };
}

async function waitUntilSocketsRead({ url }: Endpoint): Promise<void> {
  let isLate = true;
  while (isLate) {
    const beganMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, SOCKET_DRAIN_MS));
    isLate = performance.now() - beganMs > SOCKET_DRAIN_MS + TIMER_DELAY_MAX_MS;
  }
  const port = Number(new URL(url).port);
  await eventually(async () => {
    if (await isHalfClosed(port))
      throw new Error('a killed process has sent data that the endpoint has not read');
  });
}

/** TCP states of the kernel: FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING. */
const HALF_CLOSED_STATES = new Set(['04', '05', '08', '09', '0B']);

/** Whether one side of a connection to the port has closed it and the other has not read everything; false without /proc. */
async function isHalfClosed(port: number): Promise<boolean> {
  const addressSuffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const table = await readFile('/proc/net/tcp', 'utf8').catch(() => '');
  const [, ...rows] = table.split('\n');
  return rows.some((row) => {
    const [, local = '', remote = '', state = ''] = row.trim().split(/\s+/);
    return HALF_CLOSED_STATES.has(state) && (local.endsWith(addressSuffix) || remote.endsWith(addressSuffix));
  });
}

/** Returns the number of attempts in the log that reached the endpoint, by event and subscription. */
export async function countLoggedAttempts(database: PrismaDatabase): Promise<Map<string, number>> {
  const { rows } = await eventually(
    () =>
      database.pool.query<{ event_id: string; subscription_id: string; reached: string }>(
        `SELECT d.event_id, d.subscription_id, count(*) AS reached
         FROM logged_attempts a JOIN deliveries d ON d.day = a.day AND d.id = a.delivery_id
         WHERE coalesce(a.error_code, '') NOT IN ('connection_refused', 'unreachable', 'dns_failed', 'request_failed')
         GROUP BY 1, 2`,
      ),
    { intervalMs: 200 },
  );
  return new Map(rows.map((row) => [pairKey(row.event_id, row.subscription_id), Number(row.reached)]));
}

/** Returns the number of received requests in excess of the attempts in the log, by event and subscription, where it is above 0. */
export function countUnloggedArrivals(
  { arrivals }: Endpoint,
  logged: Map<string, number>,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { eventId, subscriptionId } of arrivals) {
    const key = pairKey(eventId, subscriptionId);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const unlogged = [...counts].map(([key, count]) => [key, count - (logged.get(key) ?? 0)] as const);
  return new Map(unlogged.filter(([, count]) => count > 0));
}

export function pairKey(eventId: string, subscriptionId: string): string {
  return `${eventId}/${subscriptionId}`;
}
