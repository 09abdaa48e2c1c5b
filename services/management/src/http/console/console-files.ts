import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { ContentEncoding } from './content-encoding.ts';

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
