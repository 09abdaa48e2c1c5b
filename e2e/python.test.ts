import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, test } from '@jest/globals';
import { createServiceToken } from '@runhook/database';
import { openPrismaDatabase } from '@runhook/database/prisma';
import { findRedisServer } from '@runhook/embedded';
import { createTestDatabase, IN_VAIN_MS, seedAccount } from '@runhook/testing';
import { startServer } from '../packages/queue/test/backends/redis-servers.ts';
import { startService } from './services.ts';

const run = promisify(execFile);
const inCheckout = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const SOURCE = inCheckout('packages/python');

/** What builds it, what its extras ask for, and what runs its tests. */
const OTHERS = ['hatchling>=1.26', 'pytest', 'flask', 'fastapi', 'django'];
/** How pip says that there is nobody to ask. */
const UNREACHABLE = /from versions: none|Failed to establish|Temporary failure|timed out|ProxyError|SSLError/;

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A folder with all packages that are needed, fetched once; or why there is none. */
async function packagesOrReason(): Promise<{ packages: string } | { reason: string }> {
  const told = await run('python3', ['-c', 'import sys; print(*sys.version_info[:2], sep=".")']).catch(
    () => null,
  );
  if (told === null) return { reason: 'python3 is not on the path' };
  const version = told.stdout.trim();
  if (Number(version.split('.')[1]) < 9) return { reason: `Python ${version} is older than 3.9` };
  const [hasPip, hasVenv] = await Promise.all(
    ['pip', 'venv'].map((name) => run('python3', ['-m', name, '--help']).catch(() => null)),
  );
  if (!hasPip || !hasVenv) return { reason: `Python ${version} is here without pip or venv` };
  const project = await readFile(join(SOURCE, 'pyproject.toml'), 'utf8');
  const [publish = ''] = /(?<=^publish = \[").+(?="\])/m.exec(project) ?? [];
  const key = createHash('sha256')
    .update([version, publish, ...OTHERS].join())
    .digest('hex')
    .slice(0, 16);
  const packages = inCheckout(`node_modules/.cache/python-packages/${key}`);
  if (existsSync(packages)) return { packages };
  const fetched = `${packages}.${process.pid}`;
  await mkdir(fetched, { recursive: true });
  try {
    await run('python3', ['-m', 'pip', 'download', '--quiet', '--dest', fetched, publish, ...OTHERS]);
    await rename(fetched, packages);
    return { packages };
  } catch (error) {
    await rm(fetched, { recursive: true, force: true });
    if (!UNREACHABLE.test(String((error as { stderr?: unknown }).stderr))) throw error;
    return { reason: 'PyPI cannot be reached' };
  }
}

const found = findRedisServer() === null ? { reason: 'there is no Redis' } : await packagesOrReason();
if ('reason' in found) process.stderr.write(`the package for Python is not tested: ${found.reason}\n`);

/** An empty environment with what pip makes of the wheel, and nothing of this checkout. */
async function installed(packages: string, folder: string): Promise<string> {
  const pip = (...args: string[]) => run('python3', ['-m', 'pip', ...args], { cwd: folder });
  const offline = ['--quiet', '--no-index', '--find-links', packages];
  const environment = join(folder, 'environment');
  await Promise.all([
    run('python3', ['-m', 'venv', '--without-pip', environment]),
    pip('wheel', ...offline, '--no-deps', '--wheel-dir', folder, SOURCE),
  ]);
  const [wheel] = (await readdir(folder)).filter((name) => name.endsWith('.whl'));
  const { version } = JSON.parse(await readFile(inCheckout('package.json'), 'utf8'));
  expect(wheel).toBe(`runhook-${version}-py3-none-any.whl`);
  const program = join(environment, 'bin', 'python');
  const wanted = [`${join(folder, wheel as string)}[publish,flask,fastapi,django]`, 'pytest'];
  await pip('--python', program, 'install', ...offline, '--no-compile', ...wanted);
  return program;
}

/** Services with an account and a queue of their own, as packages/python/tests/test_services.py reads them. */
async function services(folder: string): Promise<string> {
  const redis = await startServer({
    folder,
    name: 'queue',
    conf: (port) => [`port ${port}`, 'save ""', 'maxmemory-policy noeviction'],
  });
  closers.push(() => redis.kill());
  const testDatabase = await createTestDatabase();
  closers.push(() => testDatabase.drop());
  const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
  closers.push(() => database.close());
  const account = await seedAccount(database);
  const permissionSets = ['account_admin' as const];
  const who = { accountId: account.id, name: 'python', permissionSets };
  const { token } = await createServiceToken(database.prisma, who);
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

('packages' in found ? test : test.skip)(
  'the wheel installs into an empty environment, and publishes, receives and verifies from there',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'runhook-python-'));
    closers.push(() => rm(folder, { recursive: true, force: true }));
    const { packages } = found as { packages: string };
    const [program, told] = await Promise.all([installed(packages, folder), services(folder)]);
    const project = join(folder, 'project');
    await cp(join(SOURCE, 'tests'), project, { recursive: true });
    const { PYTHONPATH: _, ...env } = process.env;
    const tested = await run(program, ['-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', project], {
      cwd: project,
      env: {
        ...env,
        PYTHONDONTWRITEBYTECODE: '1',
        RUNHOOK_GOLDEN: inCheckout('packages/contract/golden'),
        RUNHOOK_SERVICES: told,
      },
    }).catch((error) => {
      throw new Error(`${error.stdout}${error.stderr}`);
    });
    for (const [line] of tested.stdout.matchAll(/^SKIPPED.*$/gm)) process.stderr.write(`python: ${line}\n`);
    expect(tested.stdout).toMatch(/^\d+ passed/m);
  },
);
