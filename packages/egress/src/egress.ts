import type { Buffer } from 'node:buffer';
import type { LookupFunction } from 'node:net';
import { type AddressGuard, createAddressGuard, type EgressRules } from './address-guard.ts';
import { createConnectionPool } from './connection-pool.ts';
import { KnownEndpoints } from './endpoint-url.ts';
import {
  type EgressResponse,
  type EgressTimings,
  type ExchangeEnd,
  exchange,
  InFlight,
  type Sender,
} from './exchange.ts';
import { describeFailure, EgressClosedError, type EgressFailure, errorCode, timedOut } from './failure.ts';
import { createGotClient } from './got-client.ts';
import { createGuardedLookup, lookupBy } from './host-lookup.ts';
import { createNameResolver } from './name-resolver.ts';

export interface EgressOptions extends EgressRules {
  /** One deadline over DNS, connect, TLS, request and the whole response. */
  timeoutMs: number;
  /** Reading a body stops here; default 16,384. */
  responseBytesMax?: number;
  /** Connections to one scheme, host and port; more requests wait, inside their deadline. Default 256. */
  maxSocketsPerEndpoint?: number;
  /** Idle connections over all endpoints; the one idle longest gives way. Default 2,048. */
  idleSocketsMax?: number;
  /** An idle connection is closed after this; default 15,000. */
  idleSocketTimeoutMs?: number;
  /** PEM certificates trusted beside the ones Node brings; default none. */
  certificateAuthorities?: readonly string[];
  /** Replaces the resolver; what it answers is guarded all the same. */
  lookup?: LookupFunction;
}

export interface EgressRequest {
  url: string;
  /** Sent as they are; nothing is added but `host`, `content-length`, `connection` and `accept-encoding: identity`. */
  headers: Record<string, string>;
  /** A string is sent as its UTF-8 bytes, which costs less than a buffer: head and body are one write. */
  body: Buffer | string;
}

/**
 * `error` is null if the response was complete, or read up to the cap, before the deadline, whatever its status; and for a 2xx
 * whose body was cut off before the deadline.
 */
export interface EgressResult {
  startedAt: Date;
  /** Milliseconds, an integer. */
  durationMs: number;
  /** With an error: what had come by then, if the head of the answer had. */
  response: EgressResponse | null;
  error: EgressFailure | null;
  /** Of the request that gave this result; null when none was made. */
  timings: EgressTimings | null;
  /** Whether the endpoint made reading its answer cost several times what a plain one costs. */
  costly: boolean;
}

/** The way out: sends what is addressed to subscribers' endpoints, and to nothing else. */
export interface Egress {
  /** Always resolves, whatever the URL, the network or the endpoint does. */
  post(request: EgressRequest): Promise<EgressResult>;
  /** Ends every connection at once; requests in flight and later ones fail with `request_failed`. */
  close(): void;
}

type Outcome = Pick<EgressResult, 'response' | 'error' | 'timings' | 'costly'>;

const CACHED_ENDPOINTS_BYTES_MAX = 16 * 1_024 * 1_024;

/** Leaves time for the request itself, and frees a silent name's place in the end. */
const NAME_TIMEOUT_MAX_MS = 6_000;

/** A module of its own (`@runhook/egress/client`), so that who sends nothing loads no HTTP client. */
export function createEgress(options: EgressOptions): Egress {
  const { timeoutMs, responseBytesMax = 16_384 } = options;
  const guard = createAddressGuard(options);
  const nameTimeoutMs = Math.min(timeoutMs, NAME_TIMEOUT_MAX_MS);
  const lookup = createGuardedLookup(
    options.lookup ?? lookupBy(createNameResolver({ timeoutMs: nameTimeoutMs })),
    guard,
  );
  const endpoints = new KnownEndpoints(guard, CACHED_ENDPOINTS_BYTES_MAX);
  const pooled = createSender(options, { guard, lookup, endpoints, keepAlive: true });
  const fresh = createSender(options, { guard, lookup, endpoints, keepAlive: false });
  let closed = false;

  async function send(request: EgressRequest, startedMs: number): Promise<Outcome> {
    if (closed) return refused(describeFailure(new EgressClosedError()));
    const { url, problem, forbidden } = endpoints.of(request.url);
    if (problem !== undefined) return refused({ code: 'invalid_url', message: `The URL ${problem}.` });
    if (forbidden !== undefined) return refused(describeFailure(forbidden));
    const { headers, body } = request;
    let end = await exchange(pooled, { url, headers, body, responseBytesMax });
    const leftMs = timeoutMs - (performance.now() - startedMs);
    if (leftMs > 0 && wasStale(end, pooled)) {
      end = await exchange(fresh, { url, headers, body, responseBytesMax, timeoutMs: leftMs });
    }
    return outcomeOf(end, timeoutMs);
  }

  return {
    async post(request) {
      const startedAt = new Date();
      const startedMs = performance.now();
      const outcome = await send(request, startedMs);
      return { startedAt, durationMs: Math.round(performance.now() - startedMs), ...outcome };
    },
    close() {
      closed = true;
      for (const { pool, inFlight } of [pooled, fresh]) {
        pool.close();
        inFlight.abortAll(new EgressClosedError());
      }
    },
  };
}

function createSender(
  options: EgressOptions,
  way: { guard: AddressGuard; lookup: LookupFunction; endpoints: KnownEndpoints; keepAlive: boolean },
): Sender {
  const { guard, lookup, endpoints, keepAlive } = way;
  const { timeoutMs } = options;
  const pool = createConnectionPool({
    guard,
    lookup,
    keepAlive,
    maxSocketsPerEndpoint: options.maxSocketsPerEndpoint ?? 256,
    idleSocketsMax: options.idleSocketsMax ?? 2_048,
    idleSocketTimeoutMs: options.idleSocketTimeoutMs ?? 15_000,
    // Node's 250 ms would give up on a distant endpoint that has several addresses; a lost first one may not eat it all.
    addressAttemptTimeoutMs: Math.min(1_000, Math.max(10, Math.floor(timeoutMs / 4))),
    certificateAuthorities: options.certificateAuthorities ?? [],
  });
  const client = createGotClient({ agents: pool.agents, endpoints, timeoutMs });
  return { client, pool, timeoutMs, inFlight: new InFlight() };
}

/**
 * A kept connection that the endpoint closed just as we wrote to it. Whether it read the request cannot be known, so this
 * one repeat may deliver twice. That is allowed: delivery is at least once, and both carry the same bytes and eventId.
 * Without it a healthy endpoint that closes idle connections would show failed attempts and get its events late. A new
 * connection that breaks, or one that gave a single byte of an answer, is never repeated here.
 */
function wasStale(end: ExchangeEnd, { pool }: Sender): boolean {
  if (end.kind !== 'failed' || end.request === null || end.response !== null) return false;
  const code = errorCode(end.error);
  return (code === 'ECONNRESET' || code === 'EPIPE') && pool.reusedInSilence(end.request);
}

function outcomeOf(end: ExchangeEnd, timeoutMs: number): Outcome {
  const { response, timings, costly } = end;
  if (end.kind === 'answered') return { response, error: null, timings, costly };
  if (end.kind === 'timeout') return { response, error: timedOut(timeoutMs), timings, costly };
  return { response, error: describeFailure(end.error), timings, costly };
}

function refused(error: EgressFailure): Outcome {
  return { response: null, error, timings: null, costly: false };
}
