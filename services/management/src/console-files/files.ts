import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { ContentEncoding } from './routes.ts';

const compress = { br: promisify(brotliCompress), gzip: promisify(gzip) };
const SUFFIX = { br: '.br', gzip: '.gz' };
/** Where the build left none: quick, for somebody waits. */
const BROTLI_QUALITY = 5;
const COMPRESSIBLE = new Set(['.css', '.html', '.js', '.json', '.map', '.svg', '.txt', '.webmanifest']);

export interface ConsoleFile {
  /** With its dot: `.js`. */
  extension: string;
  /** Whether its name has a hash of its content: then it never changes. */
  isHashed: boolean;
  /** The file in that encoding, or as it is where it would not get smaller. */
  read(encoding: ContentEncoding): Promise<{ body: Buffer; encoding: ContentEncoding }>;
}

/** A built console, as it was when it was read: a page and the files it names belong together. */
export interface ConsoleFiles {
  indexHtml: string;
  /** Every other file by its path, `/assets/index-CPp8eL0p.js`. What is not here is not served. */
  byPath: ReadonlyMap<string, ConsoleFile>;
}

/** Reads the whole folder, which is small, into memory. Null when nothing is there, or a build is under way. */
export function readConsoleFiles(folder: string): ConsoleFiles | null {
  try {
    const files = readFolder(folder);
    const named = [...files.indexHtml.matchAll(/(?:src|href)="\.(\/[^"]+)"/g)];
    return named.every(([, path = '']) => files.byPath.has(path)) ? files : null;
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
  const known = new Set(names);
  for (const name of names) {
    const isServed = name !== 'index.html' && !name.startsWith('.') && !isCompressed(name, known);
    if (isServed) byPath.set(`/${name.split(sep).join('/')}`, openFile(join(folder, name), name));
  }
  return { indexHtml: readFileSync(join(folder, 'index.html'), 'utf8'), byPath };
}

function isCompressed(name: string, known: ReadonlySet<string>): boolean {
  return Object.values(SUFFIX).some(
    (suffix) => name.endsWith(suffix) && known.has(name.slice(0, -suffix.length)),
  );
}

function openFile(path: string, name: string): ConsoleFile {
  const plain = readFileSync(path);
  const extension = extname(name);
  const made = new Map<ContentEncoding, Promise<Buffer>>([['identity', Promise.resolve(plain)]]);
  for (const encoding of ['br', 'gzip'] as const) {
    const ready = path + SUFFIX[encoding];
    if (existsSync(ready)) made.set(encoding, Promise.resolve(readFileSync(ready)));
  }
  async function read(encoding: ContentEncoding) {
    if (!COMPRESSIBLE.has(extension)) return { body: plain, encoding: 'identity' as const };
    const making = made.get(encoding) ?? encode(plain, encoding as 'br' | 'gzip');
    made.set(encoding, making);
    const body = await making;
    return body.length < plain.length ? { body, encoding } : { body: plain, encoding: 'identity' as const };
  }
  return { extension, isHashed: name.startsWith(`assets${sep}`), read };
}

function encode(plain: Buffer, encoding: 'br' | 'gzip'): Promise<Buffer> {
  if (encoding === 'gzip') return compress.gzip(plain);
  return compress.br(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } });
}

/** A page and the policy that goes with it. */
export interface Page {
  html: string;
  contentSecurityPolicy: string;
}

/**
 * The console's page as an answer to `path`. It says where the console's root is, relative to the address that the
 * browser asked for: so it works below a proxy that strips a prefix, which only the browser knows.
 * @param path as the request has it, encoded, without its query
 */
export function consolePage(indexHtml: string, path: string): Page {
  const nonce = randomBytes(16).toString('base64url');
  const head = `<base href="${rootFrom(path)}">\n<meta name="csp-nonce" content="${nonce}">`;
  return {
    // A function: a `$` in the page's own text has no meaning.
    html: indexHtml.replace(/<head[^>]*>/i, (tag) => `${tag}\n${head}`),
    contentSecurityPolicy: policy(`'nonce-${nonce}'`),
  };
}

/** What leads from a path to the root: a step up for every slash but the first. Encoded ones part nothing. */
export function rootFrom(path: string): string {
  const slashes = path.split('/').length - 1;
  return slashes <= 1 ? './' : '../'.repeat(slashes - 1);
}

/** Instead of the page while there is none. */
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
 * Nothing from another host, no inline script, no eval. The component library writes style elements into the page,
 * which the nonce lets in, and its components have style attributes.
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
