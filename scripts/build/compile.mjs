import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { run } from '../shared/command.mjs';
import { root, workspaceFolders } from '../shared/workspace.mjs';

/** Names the configuration of all typed sources: the build, which `tsconfig.json` lists, and the tests. */
export const ALL_PROJECTS = 'tsconfig.check.json';
const CACHE = join('node_modules', '.cache');
const TEST_BUILD_INFO = join(CACHE, 'tsconfig.test.tsbuildinfo');
/** Maps the path of each source to its modification time at the last run, in milliseconds. */
const SOURCE_TIMES_FILE = join(CACHE, 'runhook-source-times.json');
const TSC = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

/**
 * Runs `tsc --build`, which checks and compiles changed sources. The result is that of a fresh clone, although tsc resolves imports
 * to outputs whose source was removed, and treats a source as compiled that was moved or copied with an old modification time.
 *
 * @param {string[]} projects configurations or folders; the whole build when empty
 * @param {AbortSignal} [signal]
 * @param {{ checkout: string, folders: string[] }} [workspace] for tests; `folders` are relative
 */
export async function compile(
  projects,
  signal,
  { checkout, folders } = { checkout: root, folders: workspaceFolders() },
) {
  removeStaleOutputs(checkout, folders);
  updateTimestamps(checkout, folders);
  const args = [TSC, '--build', ...projects];
  return await run(process.execPath, args, { cwd: checkout, signal, name: 'tsc --build' });
}

/**
 * Removes outputs without a source. tsc trusts its build information, so all of it is removed when an output is removed or an
 * output folder is missing.
 */
function removeStaleOutputs(checkout, folders) {
  const buildInfoFile = folders
    .map((folder) => join(checkout, folder, 'tsconfig.tsbuildinfo'))
    .filter((file) => existsSync(file));
  const isMissing = buildInfoFile.some((file) => !existsSync(join(dirname(file), 'dist')));
  const stale = folders.flatMap((folder) => listStaleOutputs(join(checkout, folder)));
  for (const file of stale) rmSync(file, { force: true });
  if (stale.length === 0 && !isMissing) return;
  for (const file of [...buildInfoFile, join(checkout, TEST_BUILD_INFO)]) rmSync(file, { force: true });
}

/** Returns the outputs whose source is missing. Only tsc writes declarations, so they identify its outputs; bundles have none. */
function listStaleOutputs(folder) {
  const [dist, src] = [join(folder, 'dist'), join(folder, 'src')];
  if (!existsSync(dist) || !existsSync(src)) return [];
  return readdirSync(dist, { recursive: true })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => name.slice(0, -'.d.ts'.length))
    .filter((name) => ['.ts', '.tsx'].every((ending) => !existsSync(join(src, name + ending))))
    .flatMap((name) => ['.d.ts', '.js', '.js.map'].map((ending) => join(dist, name + ending)));
}

/** Sets the modification time of each source that is new or has changed its time since the last run to the current time. */
function updateTimestamps(checkout, folders) {
  const stamp = join(checkout, SOURCE_TIMES_FILE);
  const before = existsSync(stamp) ? JSON.parse(readFileSync(stamp, 'utf8')) : null;
  const now = new Date();
  const times = {};
  for (const file of folders.flatMap((folder) => listSources(join(checkout, folder)))) {
    const { mtimeMs } = statSync(file);
    const isChanged = before !== null && before[file] !== mtimeMs;
    if (isChanged) utimesSync(file, now, now);
    times[file] = isChanged ? statSync(file).mtimeMs : mtimeMs;
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, JSON.stringify(times));
}

function listSources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(node_modules|dist)$/.test(entry.name) ? [] : listSources(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}
