import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { ContentEncoding } from './routes.ts';

const compress = { br: promisify(brotliCompress), gzip: promisify(gzip) };
const SUFFIX = { br: '.br', gzip: '.gz' };
/** Quality for files that the build did not compress; low, because a client is waiting. */
const BROTLI_QUALITY = 5;
const COMPRESSIBLE = new Set(['.css', '.html', '.js', '.json', '.map', '.svg', '.txt', '.webmanifest']);

export interface ConsoleFile {
  /** Extension with the dot: `.js`. */
  extension: string;
  /** Whether the name contains a hash of the contents, so that the file never changes. */
  isHashed: boolean;
  /** Returns the file in that encoding; unencoded if its type is never compressed, or the result is not smaller. */
  read(encoding: ContentEncoding): Promise<{ body: Buffer; encoding: ContentEncoding }>;
}

/** A built console, read at one time, because the page and the files it references belong together. */
export interface ConsoleFiles {
  indexHtml: string;
  /** The other files that are served, by path, such as `/assets/index-CPp8eL0p.js`. */
  byPath: ReadonlyMap<string, ConsoleFile>;
}

/** Reads the complete folder, which is small, into memory. Returns null if it does not exist or a build is running. */
export function readConsoleFiles(folder: string): ConsoleFiles | null {
  try {
    const files = readFolder(folder);
    const references = [...files.indexHtml.matchAll(/(?:src|href)="\.(\/[^"]+)"/g)];
    return references.every(([, path = '']) => files.byPath.has(path)) ? files : null;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return null;
    throw error;
  }
}

function readFolder(folder: string): ConsoleFiles {
  const byPath = new Map<string, ConsoleFile>();
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
  const nameSet = new Set(names);
  for (const name of names) {
    const isServed = name !== 'index.html' && !name.startsWith('.') && !isCompressed(name, nameSet);
    if (isServed) byPath.set(`/${name.split(sep).join('/')}`, openFile(join(folder, name), name));
  }
  return { indexHtml: readFileSync(join(folder, 'index.html'), 'utf8'), byPath };
}

function isCompressed(name: string, names: ReadonlySet<string>): boolean {
  return Object.values(SUFFIX).some(
    (suffix) => name.endsWith(suffix) && names.has(name.slice(0, -suffix.length)),
  );
}

function openFile(path: string, name: string): ConsoleFile {
  const plain = readFileSync(path);
  const extension = extname(name);
  const encodings = new Map<ContentEncoding, Promise<Buffer>>([['identity', Promise.resolve(plain)]]);
  for (const encoding of ['br', 'gzip'] as const) {
    const compressedPath = path + SUFFIX[encoding];
    if (existsSync(compressedPath)) encodings.set(encoding, Promise.resolve(readFileSync(compressedPath)));
  }
  async function read(encoding: ContentEncoding) {
    if (!COMPRESSIBLE.has(extension)) return { body: plain, encoding: 'identity' as const };
    const encodedBody = encodings.get(encoding) ?? encode(plain, encoding as 'br' | 'gzip');
    encodings.set(encoding, encodedBody);
    const body = await encodedBody;
    return body.length < plain.length ? { body, encoding } : { body: plain, encoding: 'identity' as const };
  }
  return { extension, isHashed: name.startsWith(`assets${sep}`), read };
}

function encode(plain: Buffer, encoding: 'br' | 'gzip'): Promise<Buffer> {
  if (encoding === 'gzip') return compress.gzip(plain);
  return compress.br(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
}

/** A page and its content security policy. */
export interface Page {
  html: string;
  contentSecurityPolicy: string;
}

/**
 * Returns the console's page for `path`. It contains the path of the console's root relative to the browser's address,
 * so that it works behind a proxy that strips a prefix, which only the browser knows.
 * @param path as in the request, encoded, without the query
 */
export function consolePage(indexHtml: string, path: string): Page {
  const nonce = randomBytes(16).toString('base64url');
  const head = `<base href="${relativeRoot(path)}">\n<meta name="csp-nonce" content="${nonce}">`;
  return {
    // A function, because a `$` in replacement text would be interpreted.
    html: indexHtml.replace(/<head[^>]*>/i, (tag) => `${tag}\n${head}`),
    contentSecurityPolicy: policy(`'nonce-${nonce}'`),
  };
}

/** Returns the relative path to the root: one step up for every slash but the first; encoded slashes do not count. */
export function relativeRoot(path: string): string {
  const slashes = path.split('/').length - 1;
  return slashes <= 1 ? './' : '../'.repeat(slashes - 1);
}

/** Page until the console is built. */
export const UNBUILT_PAGE: Page = {
  html: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Runhook</title>
</head>
<body>
<h1>The console has not been built</h1>
<p>Run <code>npm run build</code> in the checkout and load this page again. The API works without it.</p>
</body>
</html>
`,
  contentSecurityPolicy: policy(),
};

/**
 * Permits nothing from other hosts, no inline scripts and no eval. The component library inserts style elements, which
 * the nonce permits, and its components have style attributes.
 */
function policy(...styleSources: string[]): string {
  const directives = {
    'default-src': ["'none'"],
    'script-src': ["'self'"],
    'style-src': ["'self'", ...styleSources],
    'style-src-attr': ["'unsafe-inline'"],
    'img-src': ["'self'", 'data:'],
    'font-src': ["'self'"],
    'connect-src': ["'self'"],
    'manifest-src': ["'self'"],
    'base-uri': ["'self'"],
    'form-action': ["'self'"],
    'frame-ancestors': ["'none'"],
  };
  return Object.entries(directives)
    .map(([name, sources]) => `${name} ${sources.join(' ')}`)
    .join(';');
}
