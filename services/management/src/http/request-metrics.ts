import type { RequestHandler } from 'express';
import type { ManagementMetrics } from '../metrics.ts';
import { requestState } from './request-state.ts';

/** A client may send any word as its method. */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** Counts and times every request by its route's pattern; to be mounted behind the request log, which knows the route. */
export function measureRequests({
  requests,
  requestDuration,
}: Pick<ManagementMetrics, 'requests' | 'requestDuration'>): RequestHandler {
  return (request, response, next) => {
    const startedMs = performance.now();
    response.once('close', () => {
      const method = METHODS.has(request.method) ? request.method : 'other';
      const route = requestState(response).route ?? 'none';
      // 499, as proxies write it: the caller left before the answer was out.
      const status = response.writableFinished ? response.statusCode : 499;
      requests.inc({ method, route, status_class: `${Math.floor(status / 100)}xx` });
      requestDuration.observe({ method, route }, (performance.now() - startedMs) / 1_000);
    });
    next();
  };
}
