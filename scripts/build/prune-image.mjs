// node scripts/build/prune-image.mjs <folder>…: removes files of a deployed service that no process reads.
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Matches declarations, source maps and documentation, which only people and compilers read. Licences are kept. */
const UNUSED_FILE = /(\.d\.[cm]?ts|\.map|\.tsbuildinfo|\.ts|\.mts|\.cts|\.md|\.markdown)$/i;
const REQUIRED_FILE = /^(licen[cs]e|notice|copying)/i;
/** Files that `pnpm deploy` leaves; they contain paths of the machine that built the image. */
const UNUSED_TOP_LEVEL = ['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'tsconfig.json'];
/**
 * The Prisma client contains a query compiler for each database, each in two sizes (fast and small), as an ES module
 * and as a CommonJS module.
 */
const PRISMA_CLIENT = /@prisma\/client\/runtime\//;
const OTHER_DATABASES =
  /query_compiler_(fast_|.*\.(cockroachdb|mysql|sqlite|sqlserver)\.)|\.wasm-base64\.js$/;
const EDGE_ONLY = /(wasm-compiler-edge|index-browser)\./;

for (const folder of process.argv.slice(2)) {
  const before = countBytes(folder);
  for (const name of UNUSED_TOP_LEVEL) rmSync(join(folder, name), { force: true });
  prune(folder);
  const after = countBytes(folder);
  process.stdout.write(`${folder}: ${megabytes(before)} MB, pruned to ${megabytes(after)} MB\n`);
}

function prune(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) prune(path);
    else if (entry.isFile() && isUnused(path, entry.name)) rmSync(path);
  }
}

function isUnused(path, name) {
  if (REQUIRED_FILE.test(name)) return false;
  if (PRISMA_CLIENT.test(path) && (OTHER_DATABASES.test(name) || EDGE_ONLY.test(name))) return true;
  return UNUSED_FILE.test(name);
}

function countBytes(folder) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += countBytes(path);
    else if (entry.isFile()) bytes += statSync(path).size;
  }
  return bytes;
}

function megabytes(bytes) {
  return (bytes / 1_048_576).toFixed(1);
}
