// node scripts/service-bundle.mjs: services/dispatcher/dist/bundle.js, of what tsc has made. For the image; bootstrap calls it, too.
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(CHECKOUT, 'services', 'dispatcher', 'dist');
const FILES = /^bundle[\w.-]*\.js$/;
/** Passwords are management's. The others are looked for by msgpackr and pg, which do without. */
const EXTERNAL = ['@node-rs/argon2', 'msgpackr-extract', 'pg-native'];

/**
 * Makes one file of the dispatcher's `dist/main.js` with all that it imports, and others beside it of what is loaded only when it
 * is asked for: it starts in half the time, and at rest holds 8 MB less (ADR 56).
 */
export async function bundleService() {
  // Installed by bootstrap, so not to be imported before it.
  const { rolldown } = await import('rolldown');
  for (const name of readdirSync(FOLDER).filter((file) => FILES.test(file))) rmSync(join(FOLDER, name));
  const bundle = await rolldown({
    input: join(FOLDER, 'main.js'),
    external: EXTERNAL,
    platform: 'node',
    cwd: CHECKOUT,
    logLevel: 'silent',
  });
  const { output } = await bundle.write({
    dir: FOLDER,
    format: 'esm',
    entryFileNames: 'bundle.js',
    chunkFileNames: 'bundle-[name].js',
    // Licences lie beside the packages.
    comments: { legal: false, jsdoc: false },
  });
  await bundle.close();
  for (const { fileName, code } of output) writeFileSync(join(FOLDER, fileName), inAscii(code));
}

/** V8 keeps a source with a single character beyond Latin 1 in two bytes each. Those that are left stand in strings and patterns. */
function inAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleService();
