import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const NOT_COPIED = new Set(['dist', 'node_modules', 'test']);

export interface Clone {
  folder: string;
  git(...args: string[]): string;
  /** Commits every change. */
  commit(subject: string): void;
  remove(): void;
}

/**
 * Makes a clone in which nothing is installed, with the scripts and the proofs of the work tree. It shares the objects of the
 * checkout and has only the root, scripts, docs and `folders`, because copying all files takes seconds.
 */
export function makeClone(...folders: string[]): Clone {
  const folder = mkdtempSync(join(tmpdir(), 'runhook-clone-'));
  execFileSync('git', ['clone', '-q', '--shared', '--no-checkout', root, folder]);
  execFileSync('git', ['sparse-checkout', 'set', 'scripts', 'docs', ...folders], { cwd: folder });
  execFileSync('git', ['checkout', '-q'], { cwd: folder });
  for (const name of readdirSync(join(root, 'scripts')).filter((entry) => !NOT_COPIED.has(entry)))
    cpSync(join(root, 'scripts', name), join(folder, 'scripts', name), { recursive: true });
  cpSync(join(root, 'scripts', 'test', 'run'), join(folder, 'scripts', 'test', 'run'), { recursive: true });
  for (const name of ['package.json', 'docs/proofs.md']) cpSync(join(root, name), join(folder, name));
  const author = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com'];
  const git = (...args: string[]) =>
    execFileSync('git', [...author, ...args], { cwd: folder, encoding: 'utf8' });
  const commit = (subject: string) => {
    git('add', '--all');
    git('commit', '-q', '--allow-empty', '-m', subject);
  };
  commit('Scripts of the work tree');
  return { folder, git, commit, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
