import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { createQueueBackend, openEventQueue } from '@runhook/queue';
import { createTestQueueUrl } from '@runhook/testing';
import { inTemporaryFolder } from './temporary-folder.ts';

/** Ends a test that hangs: npm runs several times here, which takes minutes on a busy machine. */
const HANG_TIMEOUT_MS = 1_800_000;

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const outsideFolder = fileURLToPath(new URL('outside', import.meta.url));

/** The packages that the project needs in addition, in their current releases. */
const OTHER_PACKAGES = ['express@5', '@types/express@5', 'fastify@5', '@types/node@20'];

/** Returns the environment of a user's machine, without the options of this run. */
const environment = () => {
  const { NODE_OPTIONS: _, ...env } = process.env;
  return env;
};

async function node(cwd: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, args, { cwd, env: environment() });
  return stdout;
}

const hasRedis = process.env.TEST_REDIS_URL !== undefined;
if (!hasRedis) process.stderr.write('the installed publisher publishes nothing: there is no Redis\n');

const INSTALL = [
  'install',
  '--no-audit',
  '--no-fund',
  '--loglevel=error',
  '--ignore-scripts',
  '--prefer-offline',
];

test(
  'the published packages pass the checks, install into an empty project, compile with strict types, and work',
  async () => {
    await inTemporaryFolder(async (folder) => {
      const packed = join(folder, 'packed');
      await node(root, join(root, 'scripts', 'build', 'packages.mjs'), '--out', packed, '--check');
      const names = (await readdir(packed)).filter((name) => name.endsWith('.tgz'));
      const tarballs = (wanted: (name: string) => boolean) =>
        names.filter(wanted).map((name) => join(packed, name));
      await Promise.all([
        expectPublishable(packed, names),
        expectLibrariesWork(join(folder, 'project'), tarballs(isLibrary)),
        expectProgramRuns(
          join(folder, 'programs'),
          tarballs((name) => !isLibrary(name)),
        ),
      ]);
    });
  },
  HANG_TIMEOUT_MS,
);

async function expectLibrariesWork(project: string, tarballs: string[]): Promise<void> {
  await mkdir(project);
  await cp(outsideFolder, project, { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "type": "module", "private": true }');
  await run('npm', [...INSTALL, ...tarballs, ...OTHER_PACKAGES], { cwd: project, env: environment() });

  const strict = ['--strict', '--noUncheckedIndexedAccess', '--exactOptionalPropertyTypes'];
  const modules = ['--module', 'nodenext', '--target', 'es2022', '--types', 'node', '--ignoreConfig'];
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  await node(project, tsc, ...strict, ...modules, 'publish.ts', 'receive.ts', 'call.ts').catch((error) => {
    throw new Error(error.stdout);
  });

  await expectReceives(project);
  await expectPublishes(project);
  const unreachable = [0, 'The server cannot be reached.', []];
  expect(JSON.parse(await node(project, 'call.js'))).toEqual(unreachable);
}

/** Installs the program in a separate project, because it depends on the drivers, and the libraries must work without them. */
async function expectProgramRuns(programs: string, tarballs: string[]): Promise<void> {
  await mkdir(programs);
  await run('npm', [...INSTALL, '--prefix', programs, ...tarballs], { cwd: programs, env: environment() });
  await expectRuns(programs);
}

/** Runs npm once for all packages, because its start takes longer than its work. */
async function expectPublishable(packed: string, tarballs: string[]): Promise<void> {
  const staged = await Promise.all(tarballs.map((tarball) => expectWellMade(packed, tarball)));
  const workspaces = staged.map(({ folder }) => folder);
  await writeFile(join(packed, 'package.json'), JSON.stringify({ private: true, workspaces }));
  const publish = ['publish', '--dry-run', '--workspaces', '--json', '--loglevel=error'];
  const { stdout } = await run('npm', publish, { cwd: packed, env: environment() });
  expect(Object.keys(JSON.parse(stdout)).sort()).toEqual(staged.map(({ name }) => name).sort());
}

/** Returns the name of a packed package, and its source folder below `packed`. */
async function expectWellMade(packed: string, tarball: string): Promise<{ name: string; folder: string }> {
  const [, scoped, version] = /^runhook-(?:(.+)-)?(\d+\.\d+\.\d+)\.tgz$/.exec(tarball) ?? [];
  const folder = scoped ?? 'runhook';
  const text = await readFile(join(packed, folder, 'package.json'), 'utf8');
  const rootManifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const name = scoped === undefined ? 'runhook' : `@runhook/${scoped}`;
  expect(JSON.parse(text)).toMatchObject({ name, version });
  expect(version).toBe(rootManifest.version);
  expect(text).not.toMatch(/workspace:|"private"|"source"/);
  expect((await readFile(join(packed, folder, 'README.md'), 'utf8')).length).toBeGreaterThan(500);
  return { name, folder };
}

async function expectReceives(project: string): Promise<void> {
  const golden = join(root, 'packages', 'contract', 'golden', 'deliveries.json');
  expect(JSON.parse(await node(project, 'receive.js', golden))).toEqual({
    responses: {
      express: ['204', '204', '401 wrong_signature'],
      raw: ['204'],
      late: ['500 The body was parsed'],
      fastify: ['204', '401 wrong_signature'],
      parsed: ['200 {"type":"job.run.started"}'],
      plain: ['204', '401 wrong_signature'],
      web: [204],
    },
    // Express received a delivery twice, and handled it once.
    seen: 5,
    wrong: [],
  });
}

async function expectPublishes(project: string): Promise<void> {
  const failures = { away: 'unavailable', driver: 'a queue in PostgreSQL needs the package pg' };
  if (!hasRedis) {
    expect(JSON.parse(await node(project, 'publish.js'))).toEqual(failures);
    return;
  }
  const queueUrl = await createTestQueueUrl({ name: 'Redis' }, '');
  const id = expect.stringMatching(/^wev_[0-9A-Za-z]{27}$/);
  expect(JSON.parse(await node(project, 'publish.js', queueUrl))).toEqual({
    one: id,
    many: [id, id, id],
    invalid: ['data.runFinishedAt'],
    ...failures,
  });
  const queue = openEventQueue(createQueueBackend(queueUrl), () => undefined);
  // Three of the four events share a job.
  expect(await queue.counts()).toMatchObject({ waiting: 2 });
  await queue.close();
}

const isLibrary = (tarball: string) => !/^runhook-\d/.test(tarball);

/** Runs the command line without a service. */
async function expectRuns(project: string): Promise<void> {
  const program = join(project, 'node_modules', '.bin', 'runhook');
  const { stdout } = await run(program, ['doctor', '--json'], {
    cwd: project,
    env: { PATH: process.env.PATH },
  });
  const findings: { check: string; status: string }[] = JSON.parse(stdout);
  expect(findings.map(({ status }) => status)).toEqual(['ok', ...Array(3).fill('skipped'), 'ok', 'skipped']);
  const body = join(project, 'body.json');
  await writeFile(body, '{}\n');
  const signature = createHmac('sha256', 'whsec_x').update('{}').digest('hex');
  const verifying = run(program, ['verify', body, '--header', signature, '--secret', 'whsec_x']);
  await expect(verifying).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringContaining('Byte 2 differs'),
  });
}
