import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, gunzipSync } from 'node:zlib';

export const SCRIPT = `${'document.title = "Runhook";\n'.repeat(200)}`;
export const SCRIPT_PATH = '/assets/index-CPp8eL0p.js';

const INDEX = `<!doctype html>
<html lang="en">
<head data-of="the build">
<title>Runhook costs $& nothing $1</title>
<script type="module" crossorigin src="./assets/index-CPp8eL0p.js"></script>
</head>
<body><div id="root"></div></body>
</html>
`;

export interface BuiltConsole {
  folder: string;
  write(path: string, content: string | Buffer): Promise<void>;
  remove(): Promise<void>;
}

/** Creates a small output of `vite build`. @param isBuilt false: the folder does not exist yet */
export async function createBuiltConsole(isBuilt = true): Promise<BuiltConsole> {
  const parent = await mkdtemp(join(tmpdir(), 'runhook console '));
  const folder = join(parent, 'dist');
  const write = async (path: string, content: string | Buffer) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), content);
  };
  if (isBuilt) {
    await write('assets/index-CPp8eL0p.js', SCRIPT);
    await write('assets/style-1.css', 'a{color:red}'.repeat(200));
    await write('assets/style-1.css.br', brotliCompressSync('made by the build'));
    await write('assets/tiny-2.js', '1');
    await write('assets/font-3.woff2', Buffer.alloc(2_000));
    await write('favicon.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>');
    await write('.built-from', 'a hash');
    await write('index.html', INDEX);
  }
  await writeFile(join(parent, 'secret.txt'), 'not for anyone');
  return { folder, write, remove: () => rm(parent, { recursive: true, force: true }) };
}

export interface Raw {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
  /** The decoded body. */
  text: string;
}

/** Sends a request with the path unchanged; `fetch` would resolve `..` first. */
export function rawRequest(
  origin: string,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Raw> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.once('end', () => {
        const body = Buffer.concat(chunks);
        const { 'content-encoding': encoding } = response.headers;
        const decode = encoding === 'br' ? brotliDecompressSync : encoding === 'gzip' ? gunzipSync : null;
        const text = (decode && body.length > 0 ? decode(body) : body).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, text });
      });
    })
      .once('error', reject)
      .end();
  });
}

/** Headers of a browser that requests a page. */
export const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
