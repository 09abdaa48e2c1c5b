import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Traces } from '@runhook/runtime';
import express, { type Express } from 'express';
import helmet from 'helmet';
import { consoleRoutes } from '../console-files/routes.ts';
import type { ManagementMetrics } from '../metrics.ts';
import type { Endpoint } from './endpoint.ts';
import { mapErrors } from './envelope.ts';
import { NotFoundError } from './errors.ts';
import { requireUnambiguousRequest } from './listen.ts';
import { docsRoutes } from './openapi/docs-page.ts';
import { type Log, logRequests, measureRequests, traceRequests } from './request-telemetry.ts';
import { mountEndpoints, type RouterDependencies } from './router.ts';
import { securityTxtRoutes } from './security-txt.ts';
import { unservedPathError } from './unserved-routes.ts';

export interface HttpAppParts {
  endpoints: readonly Endpoint[];
  routing: RouterDependencies;
  /** Networks whose `X-Forwarded-For`, `-Proto` and `-Host` are trusted; an empty list trusts none. */
  trustedProxyCidrs: readonly string[];
  /** Contacts in `/.well-known/security.txt`; none by default. */
  securityContacts?: readonly string[];
  /** Answers `/healthz` and `/readyz`; returns false for other requests. */
  probes: (request: IncomingMessage, response: ServerResponse) => Promise<boolean>;
  log: Log;
  /** Folder of the built console; no console is served without it. */
  consoleFolder?: string | null;
  metrics?: Pick<ManagementMetrics, 'requests' | 'requestDuration'>;
  /** Null unless traces are exported. */
  traces?: Traces | null;
}

export function createHttpApp(parts: HttpAppParts): Express {
  const { endpoints, routing, trustedProxyCidrs, probes, log, consoleFolder, metrics, traces } = parts;
  const { securityContacts = [] } = parts;
  const app = express();
  app.set('trust proxy', [...trustedProxyCidrs]);
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(async (request, response, next) => {
    if (!(await probes(request, response))) next();
  });
  app.use(logRequests(log));
  if (metrics) app.use(measureRequests(metrics));
  if (traces) app.use(traceRequests(traces));
  app.use(
    helmet({
      contentSecurityPolicy: {
        directives: {
          // Over plain http, this directive would turn the URLs of the console's assets to https.
          'upgrade-insecure-requests': null,
          'frame-ancestors': ["'none'"],
        },
      },
      xFrameOptions: { action: 'deny' },
    }),
  );
  app.use(requireUnambiguousRequest);
  app.use(['/api', '/.well-known'], (request, response, next) => {
    response.set('cache-control', 'no-store');
    // Express treats `If-None-Match: *` as a match and would send a 304 without the envelope.
    delete request.headers['if-none-match'];
    delete request.headers['if-modified-since'];
    next();
  });
  app.use(docsRoutes());
  app.use(securityTxtRoutes(securityContacts));
  app.use(mountEndpoints(endpoints, routing));
  if (consoleFolder) app.use(consoleRoutes(consoleFolder));
  app.use((request) => {
    throw unservedPathError(request.method, request.path) ?? new NotFoundError();
  });
  app.use(mapErrors(log));
  return app;
}
