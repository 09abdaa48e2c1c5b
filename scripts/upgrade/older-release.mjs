import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { allMigrations, BASELINE } from '../check/migration-rules.mjs';
import { root } from '../shared/workspace.mjs';

/** The commit before 0.2.0, the last release for which services stop. Tests use its migrations and its publishers. */
const BEFORE_THE_LAST_STOP = '40efb05';

/** Returns the release from which an upgrade with a stop starts. */
export function releaseBeforeStop(release) {
  return release ?? BEFORE_THE_LAST_STOP;
}

/** Returns the last tag before this commit; null in a checkout without one. */
export function lastTag() {
  // A release under test may already have its tag; the previous release is the last tag before it.
  const isTagged = git('tag', '--points-at', 'HEAD').stdout.trim() !== '';
  const { status, stdout } = git('describe', '--tags', '--abbrev=0', isTagged ? 'HEAD^' : 'HEAD');
  return status === 0 ? stdout.trim() : null;
}

/** Returns the release from which an upgrade starts: `release`, else the last tag, else the first commit that works on this schema. */
export function releaseBefore(release) {
  return release ?? lastTag() ?? firstOnThisSchema();
}

/** Returns the commit that added the last migration for which services stop; HEAD before it is committed. */
function firstOnThisSchema() {
  const { stdout } = git('log', '--format=%h', '--diff-filter=A', '--', `prisma/migrations/${BASELINE}`);
  return stdout.trim() || 'HEAD';
}

/**
 * Returns why the services of a release cannot run on the schema of this checkout, as a sentence, or null if they can: the release
 * lacks a migration for which services stop.
 */
export function findIncompatibility(release) {
  const { status, stdout } = git('ls-tree', '-d', '--name-only', `${release}:prisma/migrations`);
  if (status !== 0) return `there is no release ${release} with migrations`;
  const present = stdout.split('\n');
  const stops = allMigrations()
    .map(({ name }) => name)
    .filter((name) => name <= BASELINE && !present.includes(name));
  if (stops.length === 0) return null;
  return `the services of ${release} must stop for ${stops.join(', ')}: see docs/upgrading.md`;
}

/**
 * Exports a release from git and builds it in a separate folder.
 *
 * @param {string} release a tag or a commit
 * @param {string} folder in which `older` is created
 * @param {AbortSignal} signal
 * @returns {Promise<string>} its checkout
 */
export async function buildRelease(release, folder, signal) {
  const checkout = join(folder, 'older');
  await mkdir(checkout);
  const archive = join(folder, 'older.tar');
  for (const { status, stderr } of [
    git('archive', `--output=${archive}`, release),
    spawnSync('tar', ['-xf', archive, '-C', checkout], { encoding: 'utf8' }),
  ]) {
    if (status !== 0) throw new Error(`${release} could not be exported from git: ${stderr}`);
  }
  // Releases up to 0.2.0 have this file in scripts/.
  const script = ['build/bootstrap.mjs', 'bootstrap.mjs']
    .map((path) => join(checkout, 'scripts', path))
    .find((path) => existsSync(path));
  const { bootstrap } = await import(pathToFileURL(script).href);
  await bootstrap({ signal });
  return checkout;
}

function git(...args) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' });
}
