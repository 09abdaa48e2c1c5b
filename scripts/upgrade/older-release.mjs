import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BASELINE } from '../check/migration-rules.mjs';
import { root } from '../shared/workspace.mjs';

/** Stands for the release before while there is no tag: the first commit whose services work on this schema. */
const BEFORE_THE_FIRST_TAG = 'd50702b';

/** The commit before 0.2.0, the last release for which services stop. Tests use its migrations and its publishers. */
const BEFORE_THE_LAST_STOP = '40efb05';

/** The release that an upgrade with a stop comes from. */
export function releaseBeforeStop(given) {
  return given ?? BEFORE_THE_LAST_STOP;
}

/** The tag before this checkout's commit; null in a checkout without one. */
export function lastTag() {
  // A release that is being tested may have its tag already: that is not the one before it.
  const isTagged = git('tag', '--points-at', 'HEAD').stdout.trim() !== '';
  const { status, stdout } = git('describe', '--tags', '--abbrev=0', isTagged ? 'HEAD^' : 'HEAD');
  return status === 0 ? stdout.trim() : null;
}

/** The release that an upgrade comes from: what is given, else the last tag. */
export function releaseBefore(given) {
  return given ?? lastTag() ?? BEFORE_THE_FIRST_TAG;
}

/**
 * Why the services of a release cannot work on the schema of this checkout, in a sentence; null when they can. Migrations that it does
 * not have may be from before there were rules for that, and later ones say it over what the rules refuse.
 */
export function whyNotBeside(release) {
  const { status, stdout } = git('ls-tree', '-d', '--name-only', `${release}:prisma/migrations`);
  if (status !== 0) return `there is no release ${release} with migrations`;
  const known = stdout.split('\n');
  const migrations = join(root, 'prisma', 'migrations');
  const stops = readdirSync(migrations, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !known.includes(entry.name))
    .map(({ name }) => name)
    .filter(
      (name) =>
        name <= BASELINE ||
        readFileSync(join(migrations, name, 'migration.sql'), 'utf8').includes('services stand still'),
    );
  if (stops.length === 0) return null;
  return `the services of ${release} have to stop for ${stops.sort().join(', ')}: docs/upgrading.md says how`;
}

/**
 * A release as it was, built in a folder of its own.
 *
 * @param {string} release a tag or a commit
 * @param {string} folder where `older` is made
 * @param {AbortSignal} signal
 * @returns {Promise<string>} its checkout
 */
export async function buildOlder(release, folder, signal) {
  const checkout = join(folder, 'older');
  await mkdir(checkout);
  const archive = join(folder, 'older.tar');
  for (const { status, stderr } of [
    git('archive', `--output=${archive}`, release),
    spawnSync('tar', ['-xf', archive, '-C', checkout], { encoding: 'utf8' }),
  ]) {
    if (status !== 0) throw new Error(`${release} could not be taken out of git: ${stderr}`);
  }
  // Releases up to 0.2.0 have it among the scripts.
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
