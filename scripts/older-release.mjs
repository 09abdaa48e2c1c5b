import { spawnSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './workspace.mjs';

/** Stands for the release before while there is no tag. */
const BEFORE_THE_FIRST_TAG = '4f9fbd1';

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
  const script = pathToFileURL(join(checkout, 'scripts', 'bootstrap.mjs')).href;
  const { bootstrap } = await import(script);
  await bootstrap({ signal });
  return checkout;
}

function git(...args) {
  return spawnSync('git', args, { cwd: root, encoding: 'utf8' });
}
