import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { type ContentEncoding, compressText, releaseVersion } from '@runhook/runtime';
import { type RequestHandler, Router } from 'express';
import helmet from 'helmet';
import { LRUCache } from 'lru-cache';
import type { BaseUrl } from '../base-url.ts';
import { sendCompressed } from '../compressed-response.ts';
import { MethodNotAllowedError } from '../errors.ts';
import { requestState } from '../request-telemetry.ts';
import { ACCESSIBILITY_STYLES, INITIALIZER } from './docs-accessibility.ts';
import { openApiDocument } from './document.ts';
import { asyncApiDocument, EVENT_SCHEMAS } from './events-document.ts';

/** Replaced by scheme and host of the service in each response. */
const SERVER_PLACEHOLDER = 'https://runhook.invalid';

/** Names below `/docs/`: the assets of the page, all served by this process. */
const INITIALIZER_NAME = 'initializer.js';
const ACCESSIBILITY_STYLES_NAME = 'accessibility.css';
const ASSET_NAMES = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'] as const;

const [STYLES, BUNDLE, ICON] = ASSET_NAMES;

/**
 * Returns the page that shows the document. Its links are relative, so that it works below a sub-path, too.
 * @param assetsPath relative path from the page to its assets: `docs/`, or empty for a page with a trailing slash
 */
function docsPage(assetsPath: '' | 'docs/'): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runhook API</title>
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="${assetsPath}${STYLES}">
<link rel="stylesheet" href="${assetsPath}${ACCESSIBILITY_STYLES_NAME}">
<link rel="icon" type="image/png" href="${assetsPath}${ICON}">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The document itself is openapi.json, beside this page.</noscript>
<script src="${assetsPath}${BUNDLE}"></script>
<script src="${assetsPath}${INITIALIZER_NAME}"></script>
</body>
</html>
`;
}

/**
 * Stricter than Helmet's default: nothing from other hosts, not even styles. Swagger UI inserts style elements
 * and has icons in `data:` URLs; it needs no inline script and no eval.
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
    'frame-ancestors': ["'none'"],
  },
});

/** Number of compressed documents that are cached: each takes up to 60 KB, and a caller chooses the host in the document. */
const COMPRESSED_MAX = 16;

/** Serves `/openapi.json`, the page that shows it at `/docs`, and the documents of events, without authentication. */
export function docsRoutes(baseUrl: BaseUrl): Router {
  const router = Router({ caseSensitive: true });
  // Resolved instead of imported, because the package's main module would load all of Swagger UI into this process.
  const assetsDirectory = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/swagger-ui.css'));

  const compressed = new LRUCache<string, Promise<Buffer>>({ max: COMPRESSED_MAX });
  const openApiText = JSON.stringify(openApiDocument(SERVER_PLACEHOLDER));
  const asyncApiText = JSON.stringify(asyncApiDocument(releaseVersion()));
  const documents: [path: string, textFor: (serverUrl: string) => string][] = [
    [
      '/openapi.json',
      (url) => openApiText.replace(JSON.stringify(SERVER_PLACEHOLDER), () => JSON.stringify(url)),
    ],
    ['/asyncapi.json', () => asyncApiText],
    ...Object.entries(EVENT_SCHEMAS).map(([name, schema]): [string, () => string] => {
      const text = JSON.stringify(schema);
      return [`/schemas/${name}`, () => text];
    }),
  ];
  for (const [path, textFor] of documents) {
    route(router, path, async (request, response) => {
      const serverUrl = baseUrl({ origin: `${request.protocol}://${request.host}` });
      const compress = (text: string, encoding: ContentEncoding) => {
        const key = `${encoding} ${path} ${serverUrl}`;
        const body = compressed.get(key) ?? compressText(text, encoding);
        compressed.set(key, body);
        return body;
      };
      response.set('cache-control', 'no-cache').type('application/json');
      await sendCompressed(response, textFor(serverUrl), compress);
    });
  }
  route(router, '/docs', POLICY, (request, response) => {
    const assetsPath = request.path.endsWith('/') ? '' : 'docs/';
    response.set('cache-control', 'no-cache').type('html').send(docsPage(assetsPath));
  });
  const localAssets = [
    { name: INITIALIZER_NAME, type: 'js', content: INITIALIZER },
    { name: ACCESSIBILITY_STYLES_NAME, type: 'css', content: ACCESSIBILITY_STYLES },
  ];
  for (const { name, type, content } of localAssets) {
    route(router, `/docs/${name}`, POLICY, (_request, response) => {
      response.set('cache-control', 'no-cache').type(type).send(content);
    });
  }
  // Serves only these files, because the package's own page and initializer load a document from another host.
  for (const name of ASSET_NAMES) {
    route(router, `/docs/${name}`, POLICY, (_request, response, next) => {
      response.sendFile(name, { root: assetsDirectory, maxAge: '1h' }, (error) => {
        if (error) next(error);
      });
    });
  }
  return router;
}

const ALLOWED_METHODS = ['GET', 'HEAD'];

function route(router: Router, path: string, ...handlers: RequestHandler[]): void {
  router.all(
    path,
    (request, response, next) => {
      requestState(response).route = path;
      if (!ALLOWED_METHODS.includes(request.method))
        throw new MethodNotAllowedError(request.method, ALLOWED_METHODS);
      next();
    },
    ...handlers,
  );
}
