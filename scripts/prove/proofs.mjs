import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../shared/workspace.mjs';
import { PROOFS, pathsOf } from './catalogue.mjs';
import { readResults, writeResult } from './page.mjs';

const FILES_NAMED_MAX = 2;

/**
 * Writes the row of a proof that consists of tests, if they passed.
 *
 * @param {string} name of the catalogue
 * @param {{ isSuccess: boolean, passed: number, skipped: number, figures: { proof: string, figure: string }[] }} results of jest
 * @param {{ isCounted?: boolean }} [options] `isCounted`: whether the number of tests is one of the figures
 */
export function recordTests(name, { isSuccess, passed, skipped, figures }, { isCounted = true } = {}) {
  if (!isSuccess) return;
  const reportedFigures = figures.filter(({ proof }) => proof === name).map(({ figure }) => figure);
  if (reportedFigures.length > 0 && reportedFigures.every((figure) => figure.startsWith('skipped'))) {
    process.stdout.write(
      `proof ${name}: docs/proofs.md is not updated, because everything was ${reportedFigures[0]}\n`,
    );
    return;
  }
  const count = `${passed} tests passed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
  recordProof(name, isCounted ? [count, ...reportedFigures] : reportedFigures);
}

/**
 * Writes the row of a proof that has passed into docs/proofs.md, and prints that. If the covered paths have uncommitted changes, it
 * writes nothing and prints the reason.
 *
 * @param {string} name of the catalogue
 * @param {string[]} figures
 */
export function recordProof(name, figures) {
  const paths = pathsOf(PROOFS[name]);
  const dirty = git('status', '--porcelain', '--', ...paths);
  const commit = git('rev-parse', '--short=10', 'HEAD');
  const reason =
    dirty === null || commit === null
      ? 'this is no git repository'
      : dirty === ''
        ? null
        : `of uncommitted changes: ${formatFiles(dirty.split('\n').map((line) => line.slice(3)))}`;
  if (reason !== null) {
    process.stdout.write(`proof ${name}: docs/proofs.md is not updated, because ${reason}\n`);
    return;
  }
  const date = new Date().toISOString().slice(0, 10);
  writeResult(name, { date, commit, figures: figures.join('; ') });
  process.stdout.write(`proof ${name}: written to docs/proofs.md (${date}, ${commit})\n`);
}

/**
 * Returns the stale proofs, each with the reason, or null without a git repository.
 * A proof is stale if the compiled code of a covered source file, or another covered file, has changed since its commit.
 *
 * @param {{ until?: string }} [options] `until`: the commit to compare with; the work tree when omitted
 * @returns {{ name: string, reason: string }[] | null}
 */
export function staleProofs({ until } = {}) {
  if (git('rev-parse', 'HEAD') === null) return null;
  const results = readResults();
  return Object.entries(PROOFS)
    .map(([name, proof]) => ({ name, reason: staleReason(results[name], pathsOf(proof), until) }))
    .filter(({ reason }) => reason !== null);
}

/** Returns the reason why a proof is stale, or null if it is current. */
function staleReason(result, paths, until) {
  if (result === undefined || result.date === 'never') return 'has never passed';
  const { date, commit } = result;
  const range = until === undefined ? [commit] : [commit, until];
  const different = git('diff', '--name-only', '--no-renames', ...range, '--', ...paths);
  if (different === null) return `passed on ${date} at ${commit}, which is not in the history of this clone`;
  const changed = [];
  for (const file of different.split('\n')) {
    if (changed.length > FILES_NAMED_MAX) break;
    if (!compilesToSame(file, commit, until)) changed.push(file);
  }
  const added = until === undefined ? git('ls-files', '--others', '--exclude-standard', '--', ...paths) : '';
  const files = [...changed, ...added.split('\n')].filter((file) => file !== '');
  return files.length === 0 ? null : `passed on ${date} at ${commit}; changed since: ${formatFiles(files)}`;
}

/**
 * Returns whether two versions of a source file differ in comments, types and formatting only. Without the compiler, or
 * if one of the versions does not exist, they count as different.
 */
function compilesToSame(file, commit, until) {
  if (!/\.(ts|mjs)$/.test(file)) return false;
  try {
    const now =
      until === undefined ? readFileSync(join(root, file), 'utf8') : git('show', `${until}:${file}`);
    return compile(git('show', `${commit}:${file}`)) === compile(now);
  } catch {
    return false;
  }
}

function compile(source) {
  // Loaded here because the release commands run without installed packages, too.
  const { transformSync } = createRequire(import.meta.url)('@swc/core');
  const minify = { compress: false, mangle: false, format: { comments: false } };
  const jsc = { parser: { syntax: 'typescript' }, target: 'es2024', minify };
  return transformSync(source, { jsc, minify: true }).code;
}

/** Prints the stale proofs at the end of `npm test`. */
export function printStaleProofs() {
  const stale = staleProofs();
  if (stale === null) {
    process.stdout.write('proofs: unknown whether they are current, because this is no git repository\n');
    return;
  }
  const current = Object.keys(PROOFS).length - stale.length;
  process.stdout.write(`proofs (docs/proofs.md): ${current} current, ${stale.length} stale\n`);
  for (const { name, reason } of stale) process.stdout.write(`  ${name}: ${reason}\n`);
}

function formatFiles(files) {
  return `${files.slice(0, FILES_NAMED_MAX).join(', ')}${files.length > FILES_NAMED_MAX ? ' and others' : ''}`;
}

/** Returns the output of git, or null if it fails. */
function git(...args) {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trimEnd() : null;
}
