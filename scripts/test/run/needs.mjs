import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { root } from '../../shared/workspace.mjs';

const RELATIVE_IMPORT = /(?:from|import)\s*\(?\s*['"](\.\.?\/[^'"]+)['"]/g;
/** Tests in these folders start programs of the build or use the servers, although their text may not show it. */
const BUILT = /^(e2e|bench|scripts)\//;
const SERVED = /^(e2e|bench|scripts|packages\/testing)\//;
const STARTS_PROGRAMS = /process\.execPath|\.\.\/dist\/|\bdist\/(index|main|bundle|admin)\b|'dist'/;
const USES_SERVERS = /@runhook\/testing|\btesting\/src\/|TEST_(POSTGRES|REDIS)_URL|TEST_RUN_ID/;
const USES_CONSOLE = /chromium|playwright|@runhook\/console|console\/dist|console-files/i;

/**
 * Returns what must be ready before these test files run, from their text and that of the files that they import by path. Only tests
 * that start programs need the build: the others read the TypeScript sources.
 *
 * @param {string[]} files absolute
 * @returns {{ servers: boolean, build: boolean, console: boolean }}
 */
export function findNeeds(files) {
  const needs = { servers: false, build: false, console: false };
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file) || !existsSync(file)) return;
    seen.add(file);
    const text = readFileSync(file, 'utf8');
    const path = relative(root, file).replaceAll(sep, '/');
    if (!path.includes('/src/')) {
      needs.build ||= BUILT.test(path) || STARTS_PROGRAMS.test(text);
      needs.servers ||= SERVED.test(path) || USES_SERVERS.test(text);
      needs.console ||= path.startsWith('scripts/') || USES_CONSOLE.test(`${path}\n${text}`);
    }
    for (const [, target] of text.matchAll(RELATIVE_IMPORT)) visit(join(dirname(file), target));
  };
  for (const file of files) visit(file);
  return needs;
}
