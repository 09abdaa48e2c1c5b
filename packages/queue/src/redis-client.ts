import { readFileSync } from 'node:fs';
import { Cluster, Redis } from 'ioredis';
import type { RedisPlace } from './redis-url.ts';

const RECONNECT_DELAY_MAX_MS = 2_000;
/** A cluster that moves a slot, or promotes a replica, is asked again after this. */
const MOVED_DELAY_MS = 100;

/** How patient a client is. */
export interface ClientOptions {
  connectTimeout?: number;
  commandTimeout?: number;
  /** Null waits for ever. */
  maxRetriesPerRequest: number | null;
  /** Whether commands wait for a connection; true when omitted. */
  enableOfflineQueue?: boolean;
}

export function reconnectDelayMs(times: number): number {
  return Math.min(100 * 2 ** times, RECONNECT_DELAY_MAX_MS);
}

/** Of a client that talks to one server, found by its own address or by sentinels. Not for a cluster. */
export function redisOptions(place: RedisPlace, options: ClientOptions) {
  const [node] = place.nodes;
  const server = { ...sharedOptions(place), db: place.database, retryStrategy: reconnectDelayMs, ...options };
  if (place.kind === 'single') return { ...server, ...node };
  return {
    ...server,
    sentinels: place.nodes,
    name: place.masterName ?? '',
    sentinelRetryStrategy: reconnectDelayMs,
    ...(place.sentinelUsername !== undefined && { sentinelUsername: place.sentinelUsername }),
    ...(place.sentinelPassword !== undefined && { sentinelPassword: place.sentinelPassword }),
    ...(place.isTls && { enableTLSForSentinelMode: true, sentinelTLS: tlsOptions(place) }),
  };
}

/** A client of our own: whoever opens it disconnects it. It begins to connect at once. */
export function openCluster(place: RedisPlace, options: ClientOptions): Cluster {
  const { enableOfflineQueue = true, ...perNode } = options;
  return new Cluster(place.nodes, {
    enableOfflineQueue,
    clusterRetryStrategy: reconnectDelayMs,
    retryDelayOnFailover: MOVED_DELAY_MS,
    retryDelayOnClusterDown: MOVED_DELAY_MS,
    redisOptions: { ...sharedOptions(place), ...perNode },
    // The nodes are named to each other by what their certificates say, which a lookup would replace by addresses.
    ...(place.isTls && {
      dnsLookup: (name: string, done: (error: null, address: string) => void) => done(null, name),
    }),
  });
}

export function openClient(place: RedisPlace, options: ClientOptions): Redis | Cluster {
  return place.kind === 'cluster' ? openCluster(place, options) : new Redis(redisOptions(place, options));
}

function sharedOptions(place: RedisPlace) {
  return {
    ...(place.username !== undefined && { username: place.username }),
    ...(place.password !== undefined && { password: place.password }),
    ...(place.family !== undefined && { family: place.family }),
    ...(place.isTls && { tls: tlsOptions(place) }),
  };
}

function tlsOptions({ caFile, certFile, keyFile }: RedisPlace): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  return {
    ...(caFile !== undefined && { ca: readFileSync(caFile) }),
    ...(certFile !== undefined && { cert: readFileSync(certFile) }),
    ...(keyFile !== undefined && { key: readFileSync(keyFile) }),
  };
}
