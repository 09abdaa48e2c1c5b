import type { Buffer } from 'node:buffer';
import type { LookupFunction } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { type AddressGuard, createAddressGuard, type EgressRules } from './address-guard.ts';
import type { ClientCertificate } from './client-certificate.ts';
import { createConnectionPool } from './connection-pool.ts';
import { EndpointCache } from './endpoint-url.ts';
import {
  type EgressResponse,
  type EgressTimings,
  type ExchangeEnd,
  exchange,
  InFlight,
  type Sender,
} from './exchange.ts';
import {
  describeFailure,
  EgressClosedError,
  type EgressFailure,
  errorCode,
  isBlocked,
  timeoutFailure,
} from './failure.ts';
import { createGotClient } from './got-client.ts';
import { createGuardedLookup, createLookup } from './host-lookup.ts';
import { createNameResolver } from './name-resolver.ts';

export interface EgressOptions extends EgressRules {
  /** A single deadline for DNS, connect, TLS, request and the complete response. */
  timeoutMs: number;
  /** Maximum number of response body bytes that are read; default 16,384. */
  responseBytesMax?: number;
  /**
   * Maximum number of connections of an account per scheme, host and port. Further requests wait within their
   * deadline. Default 256.
   */
  maxSocketsPerEndpoint?: number;
  /** Maximum number of idle connections over all endpoints; the longest idle one is closed first. Default 2,048. */
  idleSocketsMax?: number;
  /** Idle time in milliseconds after which a connection is closed; default 15,000. */
  idleSocketTimeoutMs?: number;
  /** PEM certificates that are trusted in addition to Node's; default none. */
  certificateAuthorities?: readonly string[];
  /** Presented to endpoints that request a certificate; default none. */
  clientCertificate?: ClientCertificate | undefined;
  /** Granularity of the time in which a request to a blocked target fails, in milliseconds; default 500. */
  blockedStepMs?: number;
  /** `address:port` of the DNS servers; default: those of the system. */
  dnsServers?: readonly string[];
  /** Replaces the resolver; its results are guarded as well. */
  lookup?: LookupFunction;
}

export interface EgressRequest {
  /** Connections, TLS sessions and resolved names are shared only among the requests of one account. */
  accountId: number;
  url: string;
  /** Sent unchanged; only `host`, `content-length`, `connection` and `accept-encoding: identity` are added. */
  headers: Record<string, string>;
  /** A string is sent as its UTF-8 bytes, which costs less than a buffer because head and body are one write. */
  body: Buffer | string;
}

/**
 * `error` is null if the response was complete or read up to the cap before the deadline, whatever its status, and if
 * the body of a 2xx response was cut off before the deadline.
 */
export interface EgressResult {
  startedAt: Date;
  /** Milliseconds, an integer. */
  durationMs: number;
  /** If there is an error: the part of the response that was received, or null if its head was incomplete. */
  response: EgressResponse | null;
  error: EgressFailure | null;
  /** Timings of the request that gave this result; null if none was sent. */
  timings: EgressTimings | null;
  /** Whether reading the response cost several times as much as an ordinary response. */
  costly: boolean;
}

/** Sends requests to subscribers' endpoints through the address guard. */
export interface Egress {
  /** Always resolves; errors of the URL, the network and the endpoint are part of the result. */
  post(request: EgressRequest): Promise<EgressResult>;
  /** Closes every connection at once. Later requests and those without a 2xx head fail with `request_failed`. */
  close(): void;
}

type Outcome = Pick<EgressResult, 'response' | 'error' | 'timings' | 'costly'>;

const CACHED_ENDPOINTS_BYTES_MAX = 16 * 1_024 * 1_024;

/**
 * Maximum time for the resolution of a name, which leaves time for the request itself and releases the slot of a name
 * whose servers do not respond.
 */
const NAME_TIMEOUT_MAX_MS = 6_000;

/**
 * A request that is not sent ends at a multiple of this time, because otherwise the time would tell whether a name of
 * Runhook's network exists.
 */
const BLOCKED_STEP_MS = 500;

/**
 * Creates the sender. It is exported separately (`@runhook/egress/client`), so that programs that send no requests do
 * not load the HTTP client.
 */
export function createEgress(options: EgressOptions): Egress {
  const { timeoutMs, responseBytesMax = 16_384 } = options;
  const blockedStepMs = Math.min(options.blockedStepMs ?? BLOCKED_STEP_MS, timeoutMs);
  const guard = createAddressGuard(options);
  const nameTimeoutMs = Math.min(timeoutMs, NAME_TIMEOUT_MAX_MS);
  const resolveName = createNameResolver({
    timeoutMs: nameTimeoutMs,
    ...(options.dnsServers && { dnsServers: options.dnsServers }),
  });
  const lookupFor = (accountId: number) =>
    createGuardedLookup(options.lookup ?? createLookup(resolveName, accountId), guard);
  const endpoints = new EndpointCache(guard, CACHED_ENDPOINTS_BYTES_MAX);
  const pooledSender = createSender(options, { guard, lookupFor, endpoints, keepAlive: true });
  const unpooledSender = createSender(options, { guard, lookupFor, endpoints, keepAlive: false });
  let isClosed = false;

  async function send(request: EgressRequest, startedMs: number): Promise<Outcome> {
    if (isClosed) return rejectedOutcome(describeFailure(new EgressClosedError()));
    const { url, problem, forbidden } = endpoints.get(request.url);
    if (problem !== undefined)
      return rejectedOutcome({ code: 'invalid_url', message: `The URL ${problem}.` });
    if (forbidden !== undefined) return rejectedOutcome(describeFailure(forbidden));
    const { accountId, headers, body } = request;
    const attempt = { accountId, url, headers, body, responseBytesMax };
    let end = await exchange(pooledSender, attempt);
    const leftMs = timeoutMs - (performance.now() - startedMs);
    if (leftMs > 0 && wasStaleConnection(end, pooledSender)) {
      end = await exchange(unpooledSender, { ...attempt, timeoutMs: leftMs });
    }
    return toOutcome(end, timeoutMs);
  }

  return {
    async post(request) {
      const startedAt = new Date();
      const startedMs = performance.now();
      const outcome = await send(request, startedMs);
      const durationMs = performance.now() - startedMs;
      if (outcome.error !== null && isBlocked(outcome.error.code) && blockedStepMs > 0)
        await wait(blockedStepMs - (durationMs % blockedStepMs));
      return { startedAt, durationMs: Math.round(durationMs), ...outcome };
    },
    close() {
      isClosed = true;
      for (const { pool, inFlight } of [pooledSender, unpooledSender]) {
        pool.close();
        inFlight.abortAll(new EgressClosedError());
      }
    },
  };
}

function createSender(
  options: EgressOptions,
  context: {
    guard: AddressGuard;
    lookupFor: (accountId: number) => LookupFunction;
    endpoints: EndpointCache;
    keepAlive: boolean;
  },
): Sender {
  const { guard, lookupFor, endpoints, keepAlive } = context;
  const { timeoutMs } = options;
  const pool = createConnectionPool({
    guard,
    lookupFor,
    keepAlive,
    maxSocketsPerEndpoint: options.maxSocketsPerEndpoint ?? 256,
    idleSocketsMax: options.idleSocketsMax ?? 2_048,
    idleSocketTimeoutMs: options.idleSocketTimeoutMs ?? 15_000,
    // Node's default of 250 ms is too short for a distant endpoint; a quarter of the deadline leaves time for further
    // addresses.
    addressAttemptTimeoutMs: Math.min(1_000, Math.max(10, Math.floor(timeoutMs / 4))),
    certificateAuthorities: options.certificateAuthorities ?? [],
    clientCertificate: options.clientCertificate,
  });
  const client = createGotClient({ agents: pool.agents, timeoutMs });
  return { client, pool, endpoints, timeoutMs, inFlight: new InFlight() };
}

/**
 * Whether the endpoint closed a reused connection just as the request was sent. It may have read the request, so the
 * one repetition may deliver twice. This is allowed: delivery is at least once, and both requests carry the same bytes
 * and eventId. Without it, a healthy endpoint that closes idle connections would show failed attempts and receive its
 * events late. A new connection that fails, or one that returned a byte of the response, is never repeated here.
 */
function wasStaleConnection(end: ExchangeEnd, { pool }: Sender): boolean {
  if (end.kind !== 'failed' || end.request === null || end.response !== null) return false;
  const code = errorCode(end.error);
  return (code === 'ECONNRESET' || code === 'EPIPE') && pool.isReusedWithoutResponse(end.request);
}

function toOutcome(end: ExchangeEnd, timeoutMs: number): Outcome {
  const { response, timings, costly } = end;
  if (end.kind === 'completed') return { response, error: null, timings, costly };
  if (end.kind === 'timeout') return { response, error: timeoutFailure(timeoutMs), timings, costly };
  return { response, error: describeFailure(end.error), timings, costly };
}

function rejectedOutcome(error: EgressFailure): Outcome {
  return { response: null, error, timings: null, costly: false };
}
