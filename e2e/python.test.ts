import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { findRedisServer } from '@runhook/embedded';
import { createTestDatabase, seedAccount, WAIT_TIMEOUT_MS } from '@runhook/testing';
import { startServer } from '../packages/queue/test/backends/redis-servers.ts';
import { startService } from './services.ts';

const run = promisify(execFile);
const pip = (...args: string[]) => run('python3', ['-m', 'pip', ...args]);
const inCheckout = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const SOURCE = inCheckout('packages/python');

const BUILDER = 'hatchling>=1.26';
const EXTRAS = 'publish,ed25519,flask,fastapi,django';
/** Packages that build the wheel, satisfy its extras and run its tests. */
const OTHERS = [BUILDER, 'pytest', 'cryptography', 'flask', 'fastapi', 'django'];
/** Matches the error messages of pip when PyPI is unreachable. */
const UNREACHABLE = /from versions: none|Failed to establish|Temporary failure|timed out|ProxyError|SSLError/;

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/**
 * Folders with Python packages that pip has downloaded or installed, each filled once for a version of Python and the
 * requirements.
 */
interface Cache {
  /** Packages that the build of the wheel requires. */
  builder: string;
  /** Packages that an empty environment needs for the wheel and its extras, without the wheel. */
  dependencies: string;
}

/** Returns the cache, which it fills first if needed, or the reason why there is none. */
async function prepareCache(): Promise<Cache | { reason: string }> {
  const versionOutput = await run('python3', [
    '-c',
    'import sys; print(*sys.version_info[:2], sep=".")',
  ]).catch(() => null);
  if (versionOutput === null) return { reason: 'python3 is not on the path' };
  const version = versionOutput.stdout.trim();
  if (Number(version.split('.')[1]) < 9) return { reason: `Python ${version} is older than 3.9` };
  const [hasPip, hasVenv] = await Promise.all(
    ['pip', 'venv'].map((name) => run('python3', ['-m', name, '--help']).catch(() => null)),
  );
  if (!hasPip || !hasVenv) return { reason: `Python ${version} is here without pip or venv` };
  const project = await readFile(join(SOURCE, 'pyproject.toml'), 'utf8');
  const [publish = ''] = /(?<=^publish = \[").+(?="\])/m.exec(project) ?? [];
  const fetched = cachePath([version, publish, ...OTHERS]);
  const builder = cachePath([version, publish, ...OTHERS, 'builder']);
  const dependencies = cachePath([version, project, ...OTHERS]);
  try {
    await fillOnce(fetched, (folder) => pip('download', '--quiet', '--dest', folder, publish, ...OTHERS));
  } catch (error) {
    if (!UNREACHABLE.test(String((error as { stderr?: unknown }).stderr))) throw error;
    return { reason: 'PyPI cannot be reached' };
  }
  const offline = ['--quiet', '--no-index', '--find-links', fetched];
  await fillOnce(builder, (folder) => pip('install', ...offline, '--target', folder, BUILDER));
  await fillOnce(dependencies, async (folder) => {
    const wheel = await buildWheel(builder, folder);
    await pip('install', ...offline, '--target', folder, `${wheel}[${EXTRAS}]`, 'pytest');
    for (const name of await readdir(folder))
      if (/^runhook\b/.test(name)) await rm(join(folder, name), { recursive: true });
  });
  return { builder, dependencies };
}

function cachePath(parts: string[]): string {
  const key = createHash('sha256').update(parts.join()).digest('hex').slice(0, 16);
  return inCheckout(`node_modules/.cache/python-packages/${key}`);
}

/** Fills a folder that does not exist. A failure leaves no folder. */
async function fillOnce(folder: string, fill: (folder: string) => Promise<unknown>): Promise<void> {
  if (existsSync(folder)) return;
  const filling = `${folder}.${process.pid}`;
  await mkdir(filling, { recursive: true });
  try {
    await fill(filling);
    await rename(filling, folder);
  } finally {
    await rm(filling, { recursive: true, force: true });
  }
}

async function buildWheel(builder: string, folder: string): Promise<string> {
  const args = ['wheel', '--quiet', '--no-index', '--no-deps', '--no-build-isolation', '--wheel-dir', folder];
  await run('python3', ['-m', 'pip', ...args, SOURCE], { env: { ...process.env, PYTHONPATH: builder } });
  const { version } = JSON.parse(await readFile(inCheckout('package.json'), 'utf8'));
  const [wheel = ''] = (await readdir(folder)).filter((name) => name.endsWith('.whl'));
  expect(wheel).toBe(`runhook-${version}-py3-none-any.whl`);
  return join(folder, wheel);
}

const found = findRedisServer() === null ? { reason: 'there is no Redis' } : await prepareCache();
if ('reason' in found) process.stderr.write(`the package for Python is not tested: ${found.reason}\n`);

/** Returns the Python of an environment that has only the wheel and its dependencies. */
async function installInEnvironment({ builder, dependencies }: Cache, folder: string): Promise<string> {
  const environment = join(folder, 'environment');
  const [wheel] = await Promise.all([
    buildWheel(builder, folder),
    run('python3', ['-m', 'venv', '--without-pip', environment]),
  ]);
  const program = join(environment, 'bin', 'python');
  await pip('--python', program, 'install', '--quiet', '--no-index', '--no-deps', '--no-compile', wheel);
  const { stdout } = await run(program, ['-c', 'import sysconfig; print(sysconfig.get_path("purelib"))']);
  await writeFile(join(stdout.trim(), 'dependencies.pth'), `${dependencies}\n`);
  return program;
}

/** Starts services with a separate account and queue. Resolves with the JSON that packages/python/tests/test_services.py reads. */
async function startServices(folder: string): Promise<string> {
  const redis = await startServer({
    folder,
    name: 'queue',
    conf: (port) => [`port ${port}`, 'save ""', 'maxmemory-policy noeviction'],
  });
  closers.push(() => redis.kill());
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
  closers.push(() => database.close());
  const account = await seedAccount(database);
  const permissionSets = ['account_admin' as const];
  const owner = { accountId: account.id, name: 'python', permissionSets };
  const { token } = await createServiceToken(database.prisma, owner);
  const queueUrl = `redis://127.0.0.1:${redis.port}`;
  const environment = { DATABASE_URL: testDatabase.url, QUEUE_URL: queueUrl };
  const running = await Promise.all([
    startService('management', environment),
    startService('dispatcher', environment),
  ]);
  closers.push(async () => expect(await Promise.all(running.map((one) => one.stop()))).toEqual([0, 0]));
  const security = await readFile(inCheckout('docs/security.md'), 'utf8');
  const guest = /```sh\nredis-cli (ACL SETUSER[^`]+)```/.exec(security)?.[1];
  const { url } = running[0];
  return JSON.stringify({ url, token, accountId: account.id, job: account.jobs[0], queueUrl, guest });
}

('reason' in found ? test.skip : test)(
  'the wheel of the Python package installs into an empty environment, where it publishes, receives and verifies events',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'runhook-python-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const [program, versionOutput] = await Promise.all([
      installInEnvironment(found as Cache, folder),
      startServices(folder),
    ]);
    const project = join(folder, 'project');
    await cp(join(SOURCE, 'tests'), project, { recursive: true });
    const { PYTHONPATH: _, ...env } = process.env;
    const tested = await run(program, ['-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', project], {
      cwd: project,
      env: {
        ...env,
        PYTHONDONTWRITEBYTECODE: '1',
        RUNHOOK_GOLDEN: inCheckout('packages/contract/golden'),
        RUNHOOK_SERVICES: versionOutput,
      },
    }).catch((error) => {
      throw new Error(`${error.stdout}${error.stderr}`);
    });
    for (const [line] of tested.stdout.matchAll(/^SKIPPED.*$/gm)) process.stderr.write(`python: ${line}\n`);
    expect(tested.stdout).toMatch(/^\d+ passed/m);
    // The tests skip a framework that the extras of the wheel do not install.
    expect(tested.stdout).not.toMatch(/could not import '(flask|fastapi|django)'/);
  },
);
