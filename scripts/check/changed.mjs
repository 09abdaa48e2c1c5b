import { spawnSync } from 'node:child_process';
import { root } from '../shared/workspace.mjs';

/** Returns the output of git in the checkout. Throws if git fails. */
export function git(...args) {
  const { status, stdout, stderr, error } = spawnSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${error?.message ?? stderr.trim()}`);
  return stdout;
}

const splitLines = (text) => text.split('\n').filter((line) => line !== '');

/** Returns the untracked files that git does not ignore. */
export function untrackedFiles() {
  return splitLines(git('ls-files', '--others', '--exclude-standard'));
}

/** Returns the files that differ from HEAD, staged or not, without deleted ones. */
export function changedFiles() {
  return [...splitLines(git('diff', '--name-only', '--diff-filter=d', 'HEAD')), ...untrackedFiles()];
}
