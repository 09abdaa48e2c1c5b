import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import { beginRequestState } from './request-state.ts';

export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const CALLERS_ID = /^[\w.-]{1,64}$/;

/**
 * Gives every request an id (the caller's own `x-request-id` when it is a plain one) and writes one line when it is
 * over. The line has the path's pattern, never the path: nothing a caller sent gets into the log but that id.
 */
export function logRequests(log: Log): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    const given = request.get('x-request-id');
    const requestId = given !== undefined && CALLERS_ID.test(given) ? given : randomUUID();
    const state = beginRequestState(response, requestId);
    response.set('x-request-id', requestId);
    response.once('close', () => {
      const { route, accountId } = state;
      const durationMs = Math.round(performance.now() - startedMs);
      const status = response.writableFinished ? response.statusCode : null;
      log.info({ method: request.method, route, status, durationMs, requestId, accountId }, 'request');
    });
    next();
  };
}
