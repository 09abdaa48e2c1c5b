import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { run } from '../shared/command.mjs';
import { hashSources } from './source-hash.mjs';

/** The sources of the built console, relative to the checkout. */
const SOURCES = [
  'examples/receivers',
  'packages/console/index.html',
  'packages/console/package.json',
  'packages/console/postcss.config.cjs',
  'packages/console/public',
  'packages/console/src',
  'packages/console/tsconfig.json',
  'packages/console/vite.config.ts',
  'packages/contract/src',
  'pnpm-lock.yaml',
  'scripts/build/console-build.mjs',
  'tsconfig.base.json',
];
const STAMP = '.built-from';
const COMPRESSIBLE = /\.(css|js|json|map|svg|txt|webmanifest)$/;
/** Files below this size are not compressed, because the additional headers outweigh the savings. */
const COMPRESSED_FROM_BYTES = 1_024;

/**
 * Builds `packages/console/dist`, unless it was built from identical sources. The build goes into a temporary folder that is then
 * renamed, so that a service that starts during the build never reads an incomplete folder. The stamp is part of the folder.
 *
 * @param {{ checkout: string, step: (name: string, work: () => Promise<void>) => Promise<void>,
 * bundle?: (folder: string, outDir: string) => Promise<unknown>, signal?: AbortSignal }} options `bundle` writes `outDir` from the
 * folder of the package
 */
export async function buildConsole({
  checkout,
  step,
  signal,
  bundle = (...folders) => runVite(...folders, signal),
}) {
  const folder = join(checkout, 'packages', 'console');
  const dist = join(folder, 'dist');
  const stamp = join(dist, STAMP);
  const expectedStamp = hashSources(checkout, SOURCES);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === expectedStamp) return;
  await step('building the console', async () => {
    const newDist = join(folder, 'node_modules', `.dist-${process.pid}`);
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    try {
      await bundle(folder, newDist);
      await compressFiles(newDist);
      writeFileSync(join(newDist, STAMP), expectedStamp);
      rmSync(dist, { recursive: true, force: true });
      renameSync(newDist, dist);
    } finally {
      rmSync(newDist, { recursive: true, force: true });
    }
  });
}

function runVite(folder, outDir, signal) {
  const vite = join(folder, 'node_modules', 'vite', 'bin', 'vite.js');
  return run(process.execPath, [vite, 'build', '--logLevel', 'warn', '--outDir', outDir, '--emptyOutDir'], {
    cwd: folder,
    // NODE_ENV=development of the shell would include React's development build in the console.
    env: { ...process.env, NODE_ENV: 'production' },
    signal,
    name: 'vite build',
  });
}

/** Writes a Brotli and a gzip variant next to each file, at the highest level: a file is compressed once and sent often. */
async function compressFiles(dist) {
  const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
  const entries = readdirSync(dist, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && COMPRESSIBLE.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  await Promise.all(
    paths.map(async (path) => {
      const plain = readFileSync(path);
      if (plain.length < COMPRESSED_FROM_BYTES) return;
      const [br, gz] = await Promise.all([
        promisify(brotliCompress)(plain, brotli),
        promisify(gzip)(plain, { level: 9 }),
      ]);
      await Promise.all([writeFile(`${path}.br`, br), writeFile(`${path}.gz`, gz)]);
    }),
  );
}
