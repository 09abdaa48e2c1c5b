import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { MethodNotAllowedError } from '../errors.ts';
import { openApiDocument } from '../openapi/document.ts';
import { requestState } from '../request-state.ts';
import { ASSET_NAMES, docsPage, INITIALIZER, INITIALIZER_NAME } from './docs-page.ts';

/**
 * Narrower than the policy of everything else: nothing from another host, not even styles. Swagger UI writes styles of
 * its own into the page and has icons in `data:` URLs; it needs no inline script and no eval.
 */
const POLICY = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    'default-src': ["'none'"],
    'script-src': ["'self'"],
    'style-src': ["'self'", "'unsafe-inline'"],
    'img-src': ["'self'", 'data:'],
    'connect-src': ["'self'"],
    'base-uri': ["'none'"],
    'form-action': ["'none'"],
    'frame-ancestors': ["'self'"],
  },
});

/** `/openapi.json` and the page that shows it at `/docs`, for anyone. */
export function docsRoutes(): Router {
  const router = Router({ caseSensitive: true });
  const document = JSON.stringify(openApiDocument());
  // Found, not imported: the package's main module would run the whole of Swagger UI in this process.
  const assetsDirectory = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/swagger-ui.css'));

  route(router, '/openapi.json', (_request, response) => {
    response.set('cache-control', 'no-cache').type('application/json').send(document);
  });
  route(router, '/docs', POLICY, (request, response) => {
    const assetsPath = request.path.endsWith('/') ? '' : 'docs/';
    response.set('cache-control', 'no-cache').type('html').send(docsPage(assetsPath));
  });
  route(router, `/docs/${INITIALIZER_NAME}`, POLICY, (_request, response) => {
    response.set('cache-control', 'no-cache').type('js').send(INITIALIZER);
  });
  // By name: the package's own page and initializer, which load another host's document, are not for anyone to see.
  for (const name of ASSET_NAMES) {
    route(router, `/docs/${name}`, POLICY, (_request, response, next) => {
      response.sendFile(name, { root: assetsDirectory, maxAge: '1h' }, (error) => {
        if (error) next(error);
      });
    });
  }
  return router;
}

const ALLOWED = ['GET', 'HEAD'];

function route(router: Router, path: string, ...handlers: RequestHandler[]): void {
  router.all(
    path,
    (request, response, next) => {
      requestState(response).route = path;
      if (!ALLOWED.includes(request.method)) throw new MethodNotAllowedError(request.method, ALLOWED);
      next();
    },
    ...handlers,
  );
}
