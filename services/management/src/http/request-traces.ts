import type { Traces } from '@runhook/runtime';
import type { RequestHandler } from 'express';
import { requestState } from './request-state.ts';

/**
 * A span around every request, below the caller's when it sends `traceparent`; to be mounted behind the request log,
 * which knows the route.
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
    span.run(next);
  };
}
