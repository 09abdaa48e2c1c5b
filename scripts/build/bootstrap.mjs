import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { step as defaultStep, run } from '../shared/command.mjs';
import { root, workspaceFolders } from '../shared/workspace.mjs';
import { compile } from './compile.mjs';
import { buildConsole } from './console-build.mjs';
import { bundledPrograms, bundleServices } from './service-bundle.mjs';
import { hashSources } from './source-hash.mjs';

const PNPM = 'pnpm@12.21.0';
const NODE_MINIMUM = [20, 19];
const INSTALLED_STAMP = join(root, 'node_modules', '.runhook-installed');
const GENERATED_STAMP = join(root, 'node_modules', '.runhook-generated');
const API_STAMP = join(root, 'node_modules', '.runhook-client-api');
const BUNDLE_STAMP = join(root, 'node_modules', '.runhook-bundled');
/** The sources of the OpenAPI document. */
const API_SOURCES = [
  'packages/contract/src',
  'pnpm-lock.yaml',
  'scripts/build/client-api.mjs',
  'services/management/package.json',
  'services/management/src',
];
/** The sources of the services' bundles. */
const BUNDLE_SOURCES = [
  ...['artifacts', 'contract', 'database', 'doctor', 'egress', 'queue', 'runtime'].map(
    (name) => `packages/${name}/src`,
  ),
  'pnpm-lock.yaml',
  'scripts/build/service-bundle.mjs',
  'services/dispatcher/src',
  'services/management/src',
  'tsconfig.base.json',
];

/**
 * Prepares a checkout that has only Node and npm: installs the dependencies, generates the Prisma client and the types of the API,
 * compiles, and builds the console. Skips steps that are up to date. On a failure it prints the output of the failed command and
 * ends the process, unless `onFailure` is set.
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

/** Installs the packages and generates the sources that a type check needs and git does not contain. */
export async function prepareSources({ step = defaultStep, signal } = {}) {
  await prepareUnitTests({ step, signal });
  await describeApi(step, signal);
}

/**
 * Does the same as {@link prepareSources}, but does not generate the types of the API, which take the longest and which
 * only the type check needs.
 */
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
  const [neededMajor, neededMinor] = NODE_MINIMUM;
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return;
  throw new Error(
    `Runhook needs Node ${NODE_MINIMUM.join('.')} or newer; this is ${process.versions.node} (${process.execPath}).`,
  );
}

async function install(step, signal) {
  const folders = workspaceFolders();
  const expectedStamp = hashOf([
    `${process.platform}-${process.arch}`,
    ...['pnpm-lock.yaml', 'pnpm-workspace.yaml', 'package.json'].map(contentOf),
    ...folders.map((folder) => contentOf(join(folder, 'package.json'))),
  ]);
  const isComplete = folders.every(
    (folder) => !requiresModules(folder) || existsSync(join(root, folder, 'node_modules')),
  );
  if (isComplete && stampOf(INSTALLED_STAMP) === expectedStamp) return;
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
    writeFileSync(INSTALLED_STAMP, expectedStamp);
  });
}

/** Returns the npx of the npm that runs this process, or else the one on the path. */
export function npx() {
  const script = join(dirname(process.env.npm_execpath ?? ''), 'npx-cli.js');
  return existsSync(script) ? { file: process.execPath, args: [script] } : { file: 'npx', args: [] };
}

/**
 * Returns the environment for an installation. `npm test` passes its settings on as npm_config_*, and some of them would install to
 * another folder, omit development packages or only simulate. Settings that locate a registry are kept.
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

/**
 * Generates the Prisma client. Generating needs no schema engine, but Prisma searches for one and otherwise downloads it from a
 * host that may be unreachable, so the variable names an existing file.
 */
async function generate(step, signal) {
  const schema = join('prisma', 'schema.prisma');
  const namesScript = join('scripts', 'build', 'migration-names.mjs');
  const inputs = [schema, namesScript, 'pnpm-lock.yaml'].map(contentOf);
  const expectedStamp = hashOf([...inputs, ...migrationNames()]);
  const client = join(root, 'packages', 'database', 'src', 'generated', 'client.ts');
  if (existsSync(client) && stampOf(GENERATED_STAMP) === expectedStamp) return;
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
    await run(process.execPath, [join(root, namesScript)], {
      cwd: root,
      signal,
      name: 'migration-names.mjs',
    });
    writeFileSync(GENERATED_STAMP, expectedStamp);
  });
}

/** Generates the types of the API. They derive from the document that management serves, so management is compiled first. */
async function describeApi(step, signal) {
  const expectedStamp = hashSources(root, API_SOURCES);
  const types = join(root, 'packages', 'client', 'src', 'generated', 'api.ts');
  if (existsSync(types) && stampOf(API_STAMP) === expectedStamp) return;
  await step('generating the API types', async () => {
    await compile(['services/management'], signal);
    const script = join(root, 'scripts', 'build', 'client-api.mjs');
    await run(process.execPath, [script], { cwd: root, signal, name: 'client-api.mjs' });
    writeFileSync(API_STAMP, expectedStamp);
  });
}

async function bundle(step) {
  const expectedStamp = hashSources(root, BUNDLE_SOURCES);
  const exists = bundledPrograms().every((file) => existsSync(file));
  if (exists && stampOf(BUNDLE_STAMP) === expectedStamp) return;
  await step('bundling the services', bundleServices);
  writeFileSync(BUNDLE_STAMP, expectedStamp);
}

function requiresModules(folder) {
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
