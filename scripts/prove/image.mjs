// npm run prove -- image: builds the images from the Dockerfile with buildah, and runs them. Needs no container engine and no image
// registry, but root on Linux, buildah and debootstrap.
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap } from '../build/bootstrap.mjs';
import { readArguments, readNumber, usage } from '../shared/arguments.mjs';
import { run } from '../shared/command.mjs';
import { root, workspaceFolders } from '../shared/workspace.mjs';
import { recordProof } from './proofs.mjs';

const HIDDEN_LINE =
  'not tested, because chroot isolation has no namespaces and no cgroups: running as process 1 (the entry point is node ' +
  "itself, which SIGTERM ended), the kernel's read-only root, and memory limits";
const USAGE = usage({
  call: 'npm run prove -- image [--budget <minutes> --mirror <url> --keep]',
  purpose: 'builds the images from the Dockerfile and runs them; a proof (docs/proofs.md)',
  duration: '10 to 30 minutes; each step is printed at once',
  prerequisites: 'root on Linux, buildah and debootstrap (apt-get install buildah debootstrap)',
  details: `--budget  stops after this time; 30 when omitted
--mirror  mirror of Debian's packages for debootstrap
--keep    keeps the folder of the images`,
});

const { values } = readArguments(USAGE, {
  options: {
    budget: { type: 'string', default: '30' },
    mirror: { type: 'string' },
    keep: { type: 'boolean' },
  },
});

const budgetMinutes = readNumber('--budget', values.budget);
const missing = ['buildah', 'debootstrap'].filter((tool) => spawnSync(tool, ['--version']).error);
const isRoot = process.platform === 'linux' && process.getuid() === 0;
if (missing.length > 0 || !isRoot) {
  if (!isRoot)
    process.stderr.write('npm run prove -- image uses chroot and mount, which require root on Linux\n');
  if (missing.length > 0)
    process.stderr.write(
      `missing: ${missing.join(' and ')}. On Debian: apt-get install ${missing.join(' ')}\n`,
    );
  process.exit(1);
}

const startedAt = performance.now();
const say = (line) =>
  process.stdout.write(`[${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s] ${line}\n`);
const stopping = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(name, () => stopping.abort(new Error(`stopped by ${name}`)));
const budget = setTimeout(
  () =>
    stopping.abort(
      new Error(`the limit of ${budgetMinutes} minutes was reached: --budget <minutes> sets a higher one`),
    ),
  budgetMinutes * 60_000,
);
const { signal } = stopping;
const execUntil =
  (signal) =>
  (file, args, { environment, onLine } = {}) =>
    run(file, args, { cwd: root, env: environment, signal, onLine, name: [file, ...args].join(' ') });
const exec = execUntil(signal);

await bootstrap({ signal });
const { findRedisServer, startPostgres, startRedis } = await import('../../packages/embedded/dist/index.js');
const { closeBuildah, openBuildah } = await import('../dist/image/buildah.js');
const { buildImages } = await import('../dist/image/build-images.js');
const { proveImages } = await import('../dist/image/prove-images.js');

const folder = await mkdtemp(join(tmpdir(), 'runhook-image-'));
// PostgreSQL does not run as root.
await chmod(folder, 0o711);
const closers = [];
try {
  const buildah = await openBuildah(folder, exec);
  // Also runs after the command was stopped.
  closers.push(() => closeBuildah(buildah, execUntil(undefined)));
  say(`buildah stores its files with ${buildah.driver}`);
  const containers = await buildImages({
    checkout: root,
    workspaceFolders: workspaceFolders(),
    folder,
    mirror: values.mirror ?? null,
    buildah,
    exec,
    say,
  });
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres') });
  closers.push(() => postgres.stop());
  let queueUrl = postgres.url;
  if (findRedisServer() === null) say('no redis-server is on the path: the queue is in PostgreSQL');
  else {
    const redis = await startRedis({ dataDir: join(folder, 'redis') });
    closers.push(() => redis.stop());
    queueUrl = redis.url;
  }
  await proveImages(containers, { buildah, databaseUrl: postgres.url, queueUrl, signal, say });
  say(HIDDEN_LINE);
  say('the images passed');
  recordProof('image', ['management, dispatcher and migrate built and started', HIDDEN_LINE]);
} catch (error) {
  say(`failed: ${(signal.reason ?? error).message}`);
  process.exitCode = 1;
} finally {
  clearTimeout(budget);
  for (const close of closers.reverse()) await close();
  if (values.keep) say(`kept: ${folder}`);
  else await rm(folder, { recursive: true, force: true });
}
