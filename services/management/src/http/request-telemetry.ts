import { randomUUID } from 'node:crypto';
import type { Traces } from '@runhook/runtime';
import type { RequestHandler, Response } from 'express';
import type { Principal } from '../identity/principals.ts';
import type { ManagementMetrics } from '../metrics.ts';

/** Fields of a request's log line, collected while it is handled. */
export interface RequestState {
  requestId: string;
  /** The endpoint's path pattern; null unless one matched. */
  route: string | null;
  /** Set once the caller is authenticated, also for a request that is then rejected. */
  caller: { kind: Principal['kind']; id: number } | null;
  /** Set once the caller is authorized for the account. */
  accountId: number | null;
  /** Whether the response is a stream or a long poll: its duration and the side that closed it are not meaningful. */
  isStream: boolean;
  /** Ids of the request's span, because the line is logged outside of the span. */
  trace: object;
}

export function requestState(response: Response): RequestState {
  return response.locals.request as RequestState;
}

function beginRequestState(response: Response, requestId: string): RequestState {
  const state: RequestState = {
    requestId,
    route: null,
    caller: null,
    accountId: null,
    isStream: false,
    trace: {},
  };
  response.locals.request = state;
  return state;
}

/** Records who called, for the log line of the request. */
export function recordCaller(response: Response, principal: Principal): void {
  const id = principal.kind === 'user' ? principal.userId : principal.tokenId;
  requestState(response).caller = { kind: principal.kind, id };
}

export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const SUPPLIED_ID = /^[\w.-]{1,64}$/;

/**
 * Gives every request an id (the caller's `x-request-id` if it is a plain one) and logs one line when it ends. The line
 * has the pattern of the path, never the path, so that the log contains no text of the caller except that id.
 */
export function logRequests(log: Log): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    const suppliedId = request.get('x-request-id');
    const requestId = suppliedId !== undefined && SUPPLIED_ID.test(suppliedId) ? suppliedId : randomUUID();
    const state = beginRequestState(response, requestId);
    response.set('x-request-id', requestId);
    response.once('close', () => {
      const { route, caller, accountId, isStream, trace } = state;
      const durationMs = Math.round(performance.now() - startedMs);
      const status = response.writableFinished || isStream ? response.statusCode : null;
      log.info(
        { method: request.method, route, status, durationMs, requestId, caller, accountId, ...trace },
        'request',
      );
    });
    next();
  };
}

/** Methods that appear as label values; a client may send any word as its method. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** Counts and times requests by the pattern of their route. Must be mounted after the log, which creates the state. */
export function measureRequests({
  requests,
  requestDuration,
}: Pick<ManagementMetrics, 'requests' | 'requestDuration'>): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    response.once('close', () => {
      const method = METHODS.has(request.method) ? request.method : 'other';
      const { route: matchedRoute, isStream } = requestState(response);
      const route = matchedRoute ?? 'none';
      // 499 as in proxies: the caller disconnected before the response was complete.
      const status = response.writableFinished || isStream ? response.statusCode : 499;
      requests.inc({ method, route, status_class: `${Math.floor(status / 100)}xx` });
      if (!isStream) requestDuration.observe({ method, route }, (performance.now() - startedMs) / 1_000);
    });
    next();
  };
}

/**
 * Creates a span for every request, below the caller's if it sends `traceparent`. Must be mounted after the request
 * log, which creates the request's state.
 */
export function traceRequests(traces: Traces): RequestHandler {
  return (request, response, next) => {
    const { method, headers } = request;
    const { traceparent, tracestate } = headers;
    const span = traces.start(method, {
      kind: 'server',
      parent: { traceparent, tracestate },
      attributes: { 'http.request.method': method, 'url.scheme': request.secure ? 'https' : 'http' },
    });
    response.once('close', () => {
      const { route } = requestState(response);
      if (route !== null) {
        span.rename(`${method} ${route}`);
        span.set({ 'http.route': route });
      }
      if (response.writableFinished) span.set({ 'http.response.status_code': response.statusCode });
      if (response.statusCode >= 500) span.fail(String(response.statusCode));
      span.end();
    });
    span.run(() => {
      requestState(response).trace = traces.ids();
      next();
    });
  };
}
