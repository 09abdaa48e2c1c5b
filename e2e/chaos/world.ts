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
import { eventually, IN_VAIN_MS, startTcpProxy, type TcpProxy } from '@runhook/testing';
import { type RunningService, type ServiceOptions, startService } from '../services.ts';
import { type Endpoint, startEndpoint } from './endpoint.ts';
import { Releases } from './releases.ts';
import type { SeededRandom } from './seeded-random.ts';
import { type BackendName, type Servers, type Stores, startServers } from './servers.ts';

/** `npm run chaos` sets CHAOS=long; in the short form a fault lasts no longer than it takes to be noticed. */
export const isLong = process.env.CHAOS === 'long';

const RETRY_SETTINGS = { RETRY_BASE_DELAY_MS: '150', DELIVERY_TIMEOUT_MS: '2000' };
/** `DELIVERY_MAX_RETRIES` as it is by default, and the first attempt. */
export const ATTEMPTS_MAX = 6;
/** What was sent shortly before a kill may still be on its way into the receiver. */
const IN_THE_SOCKETS_MS = 50;
/** A timer that is later than this tells that this process, where the receiver is, is behind with its reading. */
const LATE_MS = 15;

/** Both services as processes, the servers they need, and the endpoints: everything that can be made to fail. */
export interface World<Of extends Stores = Servers> {
  backend: BackendName;
  servers: Of;
  endpoint: Endpoint;
  /** Watches; it is no part of what is tested. */
  database: PrismaDatabase;
  queues: [EventQueue, DeliveryQueue];
  management: RunningService;
  dispatchers: RunningService[];
  /** Attempts that had been sent and were not in the log when something was killed, of each delivery. */
  inFlightAtKills: Map<string, number>;
  /** When something was killed last, in milliseconds since the epoch. */
  killedAtMs: number;
  /** When the services were connected to another server of the record, in milliseconds since the epoch; 0 until then. */
  recordReplacedAtMs: number;
  /** @param checkout where another release was built */
  startManagement(checkout?: string): Promise<void>;
  /** Instead of the one with this index, which must be gone. */
  startDispatcher(index: number, other?: OtherDispatcher): Promise<void>;
  /** Between the services and their stores; null where they reach them directly. */
  proxies: Proxies | null;
  /** Kills what it is given and notes how many attempts were in flight. */
  kill(...victims: (() => Promise<unknown>)[]): Promise<void>;
  /** Notes as in flight what has arrived and is not in the log of another database, which takes the place of the first. */
  noteInFlight(database: PrismaDatabase): Promise<void>;
  close(): Promise<void>;
}

export interface Proxies {
  managementDatabase: TcpProxy;
  dispatcherDatabase: TcpProxy;
  dispatcherQueue: TcpProxy;
}

/** A dispatcher that is not as the others are. */
export interface OtherDispatcher extends ServiceOptions {
  environment?: Record<string, string>;
}

export interface WorldOptions {
  /** The services reach their stores by way of proxies. */
  byProxy?: boolean;
  /** All is of the release that was built there. */
  checkout?: string;
  /** Where the endpoint listens; 127.0.0.1 when omitted. */
  endpointHost?: string;
  /** For every service. */
  environment?: Record<string, string>;
  /** For the first dispatcher alone. */
  first?: OtherDispatcher;
}

export async function openWorld(
  backend: BackendName,
  random: SeededRandom,
  options: Pick<WorldOptions, 'byProxy' | 'checkout'> = {},
): Promise<World> {
  const { checkout } = options;
  const migrations = checkout === undefined ? undefined : join(checkout, 'prisma', 'migrations');
  return await openWorldOn(await startServers(backend, migrations), backend, random, options);
}

/** On servers that run, and are closed with it. */
export async function openWorldOn<Of extends Stores>(
  servers: Of,
  backend: BackendName,
  random: SeededRandom,
  { byProxy = false, checkout, endpointHost, environment: ofEvery = {}, first = {} }: WorldOptions,
): Promise<World<Of>> {
  const releases = new Releases();
  releases.add(() => servers.close());
  try {
    const endpoint = await startEndpoint(random, endpointHost);
    releases.add(() => endpoint.close());
    const database = openPrismaDatabase({
      url: servers.databaseUrl,
      connectTimeoutMs: IN_VAIN_MS,
      onConnectionError: () => undefined,
    });
    releases.add(() => database.close());
    const queueBackend = createQueueBackend(servers.queueUrl);
    const queues: World['queues'] = [
      openEventQueue(queueBackend, () => undefined),
      openDeliveryQueue(queueBackend, () => undefined),
    ];
    releases.add(() => Promise.all(queues.map((queue) => queue.close())));
    const proxies = byProxy ? await startProxies(servers) : null;
    releases.add(() => Promise.all(Object.values(proxies ?? {}).map((proxy) => proxy.close())));
    const ofManagement = {
      DATABASE_URL: proxies?.managementDatabase.url ?? servers.databaseUrl,
      QUEUE_URL: servers.queueUrl,
      ...RETRY_SETTINGS,
      ...ofEvery,
    };
    const ofDispatchers = {
      DATABASE_URL: proxies?.dispatcherDatabase.url ?? servers.databaseUrl,
      QUEUE_URL: proxies?.dispatcherQueue.url ?? servers.queueUrl,
      ...RETRY_SETTINGS,
      ...ofEvery,
    };
    const ofFirst = { ...ofDispatchers, ...first.environment };
    const [management, ...dispatchers] = await Promise.all([
      startService('management', ofManagement, { checkout }),
      startService('dispatcher', ofFirst, { checkout, within: first.within }),
      startService('dispatcher', ofDispatchers, { checkout }),
    ]);
    const note = (logged: Map<string, number>) => {
      for (const [key, count] of unloggedArrivals(endpoint, logged)) world.inFlightAtKills.set(key, count);
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
        world.management = await startService('management', ofManagement, { checkout: other });
      },
      startDispatcher: async (index, { environment = {}, ...options } = {}) => {
        const merged = { ...ofDispatchers, ...environment };
        world.dispatchers[index] = await startService('dispatcher', merged, options);
      },
      proxies,
      kill: async (...victims) => {
        const logged = await loggedAttempts(database);
        world.killedAtMs = Date.now();
        await Promise.all(victims.map((kill) => kill()));
        // The sockets of the dead are closed; those of who lives tell nothing of what was sent on them.
        await (victims.length > world.dispatchers.length ? endpoint.everyoneGone() : socketsRead(endpoint));
        note(logged);
      },
      noteInFlight: async (other) => note(await loggedAttempts(other)),
      close: () => releases.run(),
    };
    releases.add(() =>
      Promise.all([world.management, ...world.dispatchers].map((service) => service.stop())),
    );
    return world;
  } catch (error) {
    await releases.run();
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

async function socketsRead({ url }: Endpoint): Promise<void> {
  let isLate = true;
  while (isLate) {
    const beganMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, IN_THE_SOCKETS_MS));
    isLate = performance.now() - beganMs > IN_THE_SOCKETS_MS + LATE_MS;
  }
  const port = Number(new URL(url).port);
  await eventually(async () => {
    if (await isHalfClosed(port)) throw new Error('the dead have sent what the endpoint has not read');
  });
}

/** As the kernel tells of TCP: FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK, CLOSING. */
const HALF_CLOSED = new Set(['04', '05', '08', '09', '0B']);

/** Whether one side of a connection to the port has closed it, and the other has not read so far; false without /proc. */
async function isHalfClosed(port: number): Promise<boolean> {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const table = await readFile('/proc/net/tcp', 'utf8').catch(() => '');
  const [, ...rows] = table.split('\n');
  return rows.some((row) => {
    const [, local = '', remote = '', state = ''] = row.trim().split(/\s+/);
    return HALF_CLOSED.has(state) && (local.endsWith(ending) || remote.endsWith(ending));
  });
}

/** Attempts that reached the endpoint and are in the log, by event and subscription. */
export async function loggedAttempts(database: PrismaDatabase): Promise<Map<string, number>> {
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

/** Requests that came in beyond the attempts in the log, by event and subscription; without those that have none. */
export function unloggedArrivals({ arrivals }: Endpoint, logged: Map<string, number>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { eventId, subscriptionId } of arrivals) {
    const key = pairKey(eventId, subscriptionId);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const beyond = [...counts].map(([key, count]) => [key, count - (logged.get(key) ?? 0)] as const);
  return new Map(beyond.filter(([, count]) => count > 0));
}

export function pairKey(eventId: string, subscriptionId: string): string {
  return `${eventId}/${subscriptionId}`;
}
