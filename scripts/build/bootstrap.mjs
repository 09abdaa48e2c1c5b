import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { step as defaultStep, run } from '../shared/command.mjs';
import { root, workspaceFolders } from '../shared/workspace.mjs';
import { compile } from './compile.mjs';
import { buildConsole } from './console-build.mjs';
import { bundledPrograms, bundleServices } from './service-bundle.mjs';
import { hashOfSources } from './source-hash.mjs';

const PNPM = 'pnpm@12.21.0';
const NODE_NEEDED = [20, 19];
const INSTALLED_STAMP = join(root, 'node_modules', '.runhook-installed');
const GENERATED_STAMP = join(root, 'node_modules', '.runhook-generated');
const API_STAMP = join(root, 'node_modules', '.runhook-client-api');
const BUNDLE_STAMP = join(root, 'node_modules', '.runhook-bundled');
/** Everything that the document of the API comes from. */
const API_SOURCES = [
  'packages/contract/src',
  'pnpm-lock.yaml',
  'scripts/build/client-api.mjs',
  'services/management/package.json',
  'services/management/src',
];
/** All that the services' bundles come from. */
const BUNDLE_SOURCES = [
  ...['contract', 'database', 'doctor', 'egress', 'queue', 'runtime'].map((name) => `packages/${name}/src`),
  'pnpm-lock.yaml',
  'scripts/build/service-bundle.mjs',
  'services/dispatcher/src',
  'services/management/src',
  'tsconfig.base.json',
];

/**
 * Makes a checkout ready to run, with nothing but Node and npm: dependencies, the Prisma client, the types of
 * the API, the build, the console. What is up to date is passed over. On a failure it prints what the failed command wrote and ends the
 * process, unless `onFailure` does otherwise.
 *
 * @param {{ step?: typeof defaultStep, signal?: AbortSignal, onFailure?: (error: Error) => void, withConsole?: boolean }} [options]
 */
export async function bootstrap({
  step = defaultStep,
  signal,
  onFailure = printAndExit,
  withConsole = true,
} = {}) {
  try {
    await prepareSources({ step, signal });
    await step('building', () => compile([], signal));
    await bundle(step);
    if (withConsole) await buildConsole({ checkout: root, step, signal });
  } catch (error) {
    onFailure(error);
  }
}

/** Installs the packages and generates the sources that git does not hold: what a type check needs. */
export async function prepareSources({ step = defaultStep, signal } = {}) {
  await prepareUnitTests({ step, signal });
  await describeApi(step, signal);
}

/** The same without the types of the API, which take longest and which no program reads. */
export async function prepareUnitTests({ step = defaultStep, signal } = {}) {
  checkNode();
  await install(step, signal);
  await generate(step, signal);
}

function printAndExit(error) {
  process.stderr.write(`\n${error.message}\n`);
  process.exit(1);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [neededMajor, neededMinor] = NODE_NEEDED;
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return;
  throw new Error(
    `Runhook needs Node ${NODE_NEEDED.join('.')} or newer; this is ${process.versions.node} (${process.execPath}).`,
  );
}

async function install(step, signal) {
  const folders = workspaceFolders();
  const wanted = hashOf([
    `${process.platform}-${process.arch}`,
    ...['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json'].map(contentOf),
    ...folders.map((folder) => contentOf(join(folder, 'package.json'))),
  ]);
  const isWhole = folders.every(
    (folder) => !needsModules(folder) || existsSync(join(root, folder, 'node_modules')),
  );
  if (isWhole && stampOf(INSTALLED_STAMP) === wanted) return;
  await step('installing packages', async () => {
    const { file, args } = npx();
    await run(
      file,
      [...args, '--yes', PNPM, 'install', '--frozen-lockfile', '--config.confirm-modules-purge=false'],
      {
        cwd: root,
        env: installEnvironment(),
        signal,
        name: `npx ${PNPM} install`,
      },
    );
    writeFileSync(INSTALLED_STAMP, wanted);
  });
}

/** The npx that belongs to the npm which runs us, else the one on the path. */
export function npx() {
  const script = join(dirname(process.env.npm_execpath ?? ''), 'npx-cli.js');
  return existsSync(script) ? { file: process.execPath, args: [script] } : { file: 'npx', args: [] };
}

/**
 * `npm test` hands its own settings down as npm_config_*, among them some that would install elsewhere, leave out
 * development packages or only pretend. Those that tell how to reach a registry have to stay.
 */
function installEnvironment() {
  const reachesRegistry =
    /^npm_config_(.*registry|.*proxy|ca|cafile|cert|key|strict_ssl|userconfig|globalconfig|cache|fetch_.*|\/\/.*|_.*)$/i;
  const environment = { ...process.env, CI: 'true' };
  delete environment.NODE_ENV;
  for (const name of Object.keys(environment)) {
    if (/^npm_/i.test(name) && !reachesRegistry.test(name)) delete environment[name];
  }
  return environment;
}

function migrationNames() {
  return readdirSync(join(root, 'prisma', 'migrations'));
}

/** The schema engine is never needed to generate, but looked for, and else fetched from a host that may not be reachable. */
async function generate(step, signal) {
  const schema = join('prisma', 'schema.prisma');
  const wanted = hashOf([contentOf(schema), contentOf('pnpm-lock.yaml'), ...migrationNames()]);
  const client = join(root, 'packages', 'database', 'src', 'generated', 'client.ts');
  if (existsSync(client) && stampOf(GENERATED_STAMP) === wanted) return;
  await step('generating the database client', async () => {
    const prisma = join(root, 'node_modules', 'prisma', 'build', 'index.js');
    await run(process.execPath, [prisma, 'generate', '--schema', schema, '--no-hints'], {
      cwd: root,
      env: {
        ...process.env,
        PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
        CHECKPOINT_DISABLE: '1',
      },
      signal,
      name: 'prisma generate',
    });
    const script = join(root, 'scripts', 'build', 'known-migrations.mjs');
    await run(process.execPath, [script], { cwd: root, signal, name: 'known-migrations.mjs' });
    writeFileSync(GENERATED_STAMP, wanted);
  });
}

/** The types of the API for clients are made from what management serves, so management is compiled before all else. */
async function describeApi(step, signal) {
  const wanted = hashOfSources(root, API_SOURCES);
  const types = join(root, 'packages', 'client', 'src', 'generated', 'api.ts');
  if (existsSync(types) && stampOf(API_STAMP) === wanted) return;
  await step('describing the API to its clients', async () => {
    await compile(['services/management'], signal);
    const script = join(root, 'scripts', 'build', 'client-api.mjs');
    await run(process.execPath, [script], { cwd: root, signal, name: 'client-api.mjs' });
    writeFileSync(API_STAMP, wanted);
  });
}

async function bundle(step) {
  const wanted = hashOfSources(root, BUNDLE_SOURCES);
  const isThere = bundledPrograms().every((file) => existsSync(file));
  if (isThere && stampOf(BUNDLE_STAMP) === wanted) return;
  await step('bundling the services', bundleServices);
  writeFileSync(BUNDLE_STAMP, wanted);
}

function needsModules(folder) {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(contentOf(join(folder, 'package.json')));
  return Object.keys({ ...dependencies, ...devDependencies }).length > 0;
}

function contentOf(path) {
  return readFileSync(join(root, path), 'utf8');
}

function stampOf(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : null;
}

function hashOf(texts) {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex');
}
