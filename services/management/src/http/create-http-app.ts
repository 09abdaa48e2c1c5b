import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Express } from 'express';
import helmet from 'helmet';
import { docsRoutes } from './docs/docs-routes.ts';
import type { Endpoint } from './endpoint.ts';
import { mapErrors } from './error-mapper.ts';
import { NotFoundError } from './errors.ts';
import { type Entrance, mountEndpoints } from './mount-endpoints.ts';
import { type Log, logRequests } from './request-log.ts';

export interface HttpAppParts {
  endpoints: readonly Endpoint[];
  entrance: Entrance;
  /** Whose `X-Forwarded-For`, `-Proto` and `-Host` are believed; nobody's when it is empty. */
  trustedProxyCidrs: readonly string[];
  /** Answers `/healthz`, `/readyz` and `/metrics`; false when the request is for none of them. */
  probes: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
  log: Log;
}

export function createHttpApp(parts: HttpAppParts): Express {
  const { endpoints, entrance, trustedProxyCidrs, probes, log } = parts;
  const app = express();
  app.set('trust proxy', [...trustedProxyCidrs]);
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(async (request, response, next) => {
    if (!(await probes(request, response))) next();
  });
  app.use(logRequests(log));
  // Whoever serves plain http, on a laptop or behind a proxy, must not have the console's assets turned to https.
  app.use(helmet({ contentSecurityPolicy: { directives: { 'upgrade-insecure-requests': null } } }));
  app.use('/api', (_request, response, next) => {
    response.set('cache-control', 'no-store');
    next();
  });
  app.use(docsRoutes());
  app.use(mountEndpoints(endpoints, entrance));
  app.use(() => {
    throw new NotFoundError();
  });
  app.use(mapErrors(log));
  return app;
}
