import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { expect, test } from '@jest/globals';

/** What was built, by its path in the checkout. */
const built = (path: string) => new URL(`../../${path}`, import.meta.url).href;

/** Loads a module as node does, and prints what was asked to be resolved on the way: each import of each file. */
const LISTING = (url: string) => `
  import { register } from 'node:module';
  import { MessageChannel } from 'node:worker_threads';
  const { port1, port2 } = new MessageChannel();
  const loaded = [];
  port1.on('message', (one) => loaded.push(one));
  const hooks = 'let port; export const initialize = (data) => { port = data; };'
    + 'export const load = async (url, context, next) => { port.postMessage(url); return next(url, context); };';
  register('data:text/javascript,' + encodeURIComponent(hooks), { data: port2, transferList: [port2] });
  await import(${JSON.stringify(url)});
  const { receiveMessageOnPort } = await import('node:worker_threads');
  for (let one = receiveMessageOnPort(port1); one; one = receiveMessageOnPort(port1)) loaded.push(one.message);
  const required = Object.keys((await import('node:module')).default.createRequire(${JSON.stringify(url)}).cache);
  process.stdout.write(JSON.stringify([...loaded, ...required]));
  process.exit(0);`;

function loadedBy(url: string): string[] {
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--input-type=module', '--eval', LISTING(url)],
    {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** The list of migrations is ours, beside the generated client. */
const OF_PRISMA = /[\\/]@prisma[\\/+]|[\\/]generated[\\/](?!migrations\.js$)/;

test('the dispatcher loads nothing of Prisma, and what has it is seen', () => {
  const loaded = loadedBy(built('services/dispatcher/dist/app.js'));
  expect(loaded.some((url) => url.endsWith('/packages/database/dist/open-database.js'))).toBe(true);
  expect(loaded.filter((url) => OF_PRISMA.test(url))).toEqual([]);
  const withPrisma = loadedBy(built('packages/database/dist/open-prisma.js'));
  expect(withPrisma.filter((url) => OF_PRISMA.test(url))).not.toEqual([]);
});

const OF_GOT = /[\\/]node_modules[\\/]got[\\/]/;

test('management loads no HTTP client until somebody tests an endpoint (docs/adr/0056-service-bundle.md)', () => {
  const loaded = loadedBy(built('services/management/dist/app.js'));
  expect(loaded.some((url) => url.endsWith('/packages/egress/dist/index.js'))).toBe(true);
  expect(loaded.filter((url) => OF_GOT.test(url))).toEqual([]);
  expect(loadedBy(built('packages/egress/dist/egress.js')).filter((url) => OF_GOT.test(url))).not.toEqual([]);
});

test.each([
  ['dispatcher', 'bundle.js', ['bundle-nodemailer.js', 'bundle-trace-sdk.js']],
  [
    'management',
    'bundle.js',
    ['bundle-egress.js', 'bundle-query_compiler_small_bg.postgresql.wasm-base64.js'],
  ],
  ['management', 'admin.js', ['bundle-egress.js', 'bundle-trace-sdk.js']],
])(
  '%s/dist/%s loads node and its own parts alone, none before it is asked for, and has one byte for a character',
  (service, program, later) => {
    const folder = new URL(built(`services/${service}/dist/`));
    const names = readdirSync(folder).filter((name) => name === program || /^bundle.*\.js$/.test(name));
    const texts = new Map(names.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')]));
    const loaded = new Set([program]);
    for (const name of loaded) {
      const imports = [
        ...(texts.get(name) ?? '').matchAll(/^import (?:[^'"\n]* from )?["']([^"']+)["'];$/gm),
      ];
      expect(imports).not.toEqual([]);
      for (const [, id = ''] of imports) {
        if (isBuiltin(id)) continue;
        const part = id.replace('./', '');
        expect(names).toContain(part);
        loaded.add(part);
      }
    }
    for (const name of later) {
      expect(names).toContain(name);
      expect([...loaded]).not.toContain(name);
    }
    const whole = [...texts.values()].join('');
    expect(whole).toContain('job.run.completed');
    expect(whole).toMatch(/^\/\/ node_modules\/.*\/bullmq\//m);
    expect(/^\/\/ .*@prisma/m.test(whole)).toBe(service === 'management');
    expect(whole).toMatch(/^[\0-\x7f]*$/);
  },
);
