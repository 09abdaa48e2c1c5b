import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Request, type Response, Router } from 'express';
import { MethodNotAllowedError } from '../http/errors.ts';
import { requestState } from '../http/request-telemetry.ts';
import {
  type ConsoleFile,
  type ConsoleFiles,
  consolePage,
  type Page,
  readConsoleFiles,
  UNBUILT_PAGE,
} from './files.ts';

/** Matches the paths that never return the console's page, with any number of leading slashes. */
const RESERVED_PATHS = /^\/+(?:\.well-known|api|assets|docs|healthz|metrics|openapi\.json|readyz)(?:\/|$)/i;
const ALLOWED_METHODS = ['GET', 'HEAD'];
const YEAR_SECONDS = 365 * 24 * 3600;

/**
 * Serves the console at `/`: the built files, and the console's page for every other address that a browser opens; the
 * scripts of the page route the address. Must be mounted last.
 * @param folder of the build; it may be created later, and is read once, at the first request that finds it complete
 */
export function consoleRoutes(folder: string): Router {
  const router = Router({ caseSensitive: true });
  let files: ConsoleFiles | null = null;
  const currentFiles = () => {
    files ??= readConsoleFiles(folder);
    return files;
  };

  router.use(async (request, response, next) => {
    const file = currentFiles()?.byPath.get(request.path);
    if (file) await sendFile(file, request, response);
    else if (wantsPage(request)) sendPage(currentFiles(), request, response);
    else next();
  });
  return router;
}

/** Whether a browser opens the address. An API client, which accepts any type, gets the page at `/` only. */
function wantsPage(request: Request): boolean {
  if (!ALLOWED_METHODS.includes(request.method) || RESERVED_PATHS.test(request.path)) return false;
  if (request.path === '/') return request.accepts('html') !== false;
  return request.accepts(['json', 'html']) === 'html';
}

function sendPage(files: ConsoleFiles | null, request: Request, response: Response): void {
  requestState(response).route = '/';
  const page: Page = files === null ? UNBUILT_PAGE : consolePage(files.indexHtml, request.path);
  response
    .status(files === null ? 404 : 200)
    .vary('Accept')
    .set({ 'cache-control': 'no-cache', 'content-security-policy': page.contentSecurityPolicy })
    .type('html')
    .send(page.html);
}

async function sendFile(file: ConsoleFile, request: Request, response: Response): Promise<void> {
  requestState(response).route = '/assets';
  if (!ALLOWED_METHODS.includes(request.method))
    throw new MethodNotAllowedError(request.method, ALLOWED_METHODS);
  const { body, encoding } = await file.read(chooseEncoding(request.get('accept-encoding')));
  if (encoding !== 'identity') response.set('content-encoding', encoding);
  response
    .vary('Accept-Encoding')
    .set('cache-control', file.isHashed ? `public, max-age=${YEAR_SECONDS}, immutable` : 'no-cache')
    .type(file.extension)
    .send(body);
}

/** Returns the folder of the built console, which need not exist yet; null if its package is not installed. */
export function findConsole(): string | null {
  try {
    return join(dirname(createRequire(import.meta.url).resolve('@runhook/console/package.json')), 'dist');
  } catch (error) {
    if ((error as { code?: unknown }).code === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
}

export type ContentEncoding = 'br' | 'gzip' | 'identity';

/** Encodings that files may have, the smallest first: the order decides between equal qualities. */
const PREFERRED = ['br', 'gzip'] as const;

/** Returns the encoding for an `Accept-Encoding`; `identity` if the client prefers it or sends no header. */
export function chooseEncoding(header: string | undefined): ContentEncoding {
  const qualities = new Map((header ?? '').split(',').map(readQuality));
  const qualityOf = (name: string) => qualities.get(name) ?? qualities.get('*') ?? 0;
  const [best] = [...PREFERRED].sort((one, other) => qualityOf(other) - qualityOf(one));
  if (best === undefined || qualityOf(best) === 0) return 'identity';
  return qualityOf(best) >= (qualities.get('identity') ?? 0) ? best : 'identity';
}

/** Parses one part, such as `gzip;q=0.5`. */
function readQuality(part: string): [name: string, quality: number] {
  const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return [name, quality === undefined ? 1 : Number(quality) || 0];
}
