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

/** Everything that has types: the build, which `tsconfig.json` lists, and the tests on top of it. */
export const EVERYTHING = 'tsconfig.check.json';
const CACHE = join('node_modules', '.cache');
const NOTES_OF_TESTS = join(CACHE, 'tsconfig.test.tsbuildinfo');
/** The time of each source at the last run, in milliseconds, by its path. */
const TIMES = join(CACHE, 'runhook-source-times.json');
const TSC = join(root, 'node_modules', 'typescript', 'bin', 'tsc');

/**
 * Runs `tsc --build`, which checks and compiles what has changed. Its result is that of a fresh clone, although tsc resolves imports
 * to outputs whose source is gone, and takes a source for compiled that was moved or copied with an old time.
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
  renewTimes(checkout, folders);
  const args = [TSC, '--build', ...projects];
  return await run(process.execPath, args, { cwd: checkout, signal, name: 'tsc --build' });
}

/** tsc trusts its notes about what it has compiled, so all notes go when an output is removed or a folder of outputs is missing. */
function removeStaleOutputs(checkout, folders) {
  const notes = folders
    .map((folder) => join(checkout, folder, 'tsconfig.tsbuildinfo'))
    .filter((file) => existsSync(file));
  const isMissing = notes.some((file) => !existsSync(join(dirname(file), 'dist')));
  const stale = folders.flatMap((folder) => staleOutputsOf(join(checkout, folder)));
  for (const file of stale) rmSync(file, { force: true });
  if (stale.length === 0 && !isMissing) return;
  for (const file of [...notes, join(checkout, NOTES_OF_TESTS)]) rmSync(file, { force: true });
}

/** The declarations show what tsc has written: bundles have none. */
function staleOutputsOf(folder) {
  const [dist, src] = [join(folder, 'dist'), join(folder, 'src')];
  if (!existsSync(dist) || !existsSync(src)) return [];
  return readdirSync(dist, { recursive: true })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => name.slice(0, -'.d.ts'.length))
    .filter((name) => ['.ts', '.tsx'].every((ending) => !existsSync(join(src, name + ending))))
    .flatMap((name) => ['.d.ts', '.js', '.js.map'].map((ending) => join(dist, name + ending)));
}

/** Gives the current time to each source that is new or has another time than at the last run. */
function renewTimes(checkout, folders) {
  const stamp = join(checkout, TIMES);
  const before = existsSync(stamp) ? JSON.parse(readFileSync(stamp, 'utf8')) : null;
  const now = new Date();
  const times = {};
  for (const file of folders.flatMap((folder) => sourcesOf(join(checkout, folder)))) {
    const { mtimeMs } = statSync(file);
    const isChanged = before !== null && before[file] !== mtimeMs;
    if (isChanged) utimesSync(file, now, now);
    times[file] = isChanged ? statSync(file).mtimeMs : mtimeMs;
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, JSON.stringify(times));
}

function sourcesOf(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^(node_modules|dist)$/.test(entry.name) ? [] : sourcesOf(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}
