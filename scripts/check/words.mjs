// npm run check -- words: looks for words that the glossary replaces, in lines that were added since HEAD or in whole files.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { readArguments, usage } from '../shared/arguments.mjs';
import { root } from '../shared/workspace.mjs';
import { git, untrackedFiles } from './changed.mjs';
import { figuresOf } from './word-figures.mjs';
import { entriesInName, entriesInProse, entryAtBeginning, isChecked } from './word-list.mjs';
import { contentsOf } from './word-sources.mjs';

const USAGE = usage({
  call: 'npm run check -- words [<file>… --all --figures --at <commit>]',
  purpose:
    'finds words and names that scripts/check/words.json replaces, in added lines when called without arguments',
  duration: 'a second; a few for --all',
  prerequisites: 'git; packages for files of TypeScript and JavaScript',
  details: `<file>      checks these files
--all       checks all tracked files, as npm test does
--figures   prints counts by package instead: comment lines with an entry, dangling beginnings, identifiers, texts
--at        reads the files of a commit instead of the work tree, for --all and --figures`,
});

/** @typedef {{ file: string, line: number, scope: import('./word-list.mjs').Scope, word: string, instead: string }} Finding */

/** Runs the check for its command line, and fails the command if there are findings. */
export async function runWords() {
  const { values, positionals } = readArguments(USAGE, {
    options: {
      all: { type: 'boolean' },
      figures: { type: 'boolean' },
      at: { type: 'string' },
    },
    allowPositionals: true,
  });
  if (values.figures) process.stdout.write(figuresOf(await readAll(values.at)));
  else if (positionals.length > 0) report(await findingsInFiles(positionals));
  else if (values.all) report(findingsOf(await readAll(values.at)));
  else await checkWords();
}

/** Checks the lines that were added since HEAD. */
export async function checkWords() {
  const added = addedLines();
  const files = [...added.keys()].filter((file) => isChecked(file));
  const findings = findingsOf(await readContents(files.map((file) => [file, textOf(file)])));
  report(findings.filter(({ file, line }) => added.get(file).has(line)));
}

function report(findings) {
  for (const { file, line, word, instead, scope } of findings) {
    const how = scope === 'beginning' ? 'a comment begins with ' : scope === 'prose' ? '' : 'a name has ';
    process.stderr.write(`${file}:${line}: ${how}"${word}"; write instead: ${instead}\n`);
  }
  process.stdout.write(
    `words: ${findings.length === 0 ? 'nothing to change' : `${findings.length} to replace`}\n`,
  );
  if (findings.length > 0) process.exitCode = 1;
}

async function findingsInFiles(paths) {
  const files = paths.map((path) => [relative(root, resolve(path)), readFileSync(path, 'utf8')]);
  return findingsOf(await readContents(files));
}

/** Returns the contents of all tracked files that are checked. @param {string} [commit] the work tree when omitted */
async function readAll(commit) {
  const list = commit === undefined ? git('ls-files') : git('ls-tree', '-r', '--name-only', commit);
  const files = list.split('\n').filter((file) => file !== '' && isChecked(file));
  const texts = commit === undefined ? files.map((file) => [file, textOf(file)]) : textsAt(commit, files);
  return await readContents(texts);
}

async function readContents(files) {
  const read = [];
  for (const [file, text] of files) {
    const contents = text === null ? null : await contentsOf(file, text);
    if (contents !== null) read.push({ file, ...contents });
  }
  return read;
}

/** Returns null for a file that is missing in the work tree. */
function textOf(file) {
  try {
    return readFileSync(resolve(root, file), 'utf8');
  } catch {
    return null;
  }
}

function textsAt(commit, files) {
  const input = files.map((file) => `${commit}:${file}\n`).join('');
  const options = { cwd: root, input, maxBuffer: 2 ** 30 };
  const { stdout } = spawnSync('git', ['cat-file', '--batch'], options);
  let at = 0;
  return files.map((file) => {
    const end = stdout.indexOf(10, at);
    const size = Number(stdout.subarray(at, end).toString().split(' ')[2]);
    at = end + 1 + size + 1;
    return [file, stdout.subarray(end + 1, end + 1 + size).toString()];
  });
}

/** @returns {Finding[]} in the order of the files and lines */
function findingsOf(read) {
  return read.flatMap(({ file, comments, texts, names }) => {
    const beginnings = comments.flatMap(({ line, text }) => {
      const found = entryAtBeginning(text.trimStart());
      const blankLines = /^\s*/.exec(text)[0].split('\n').length - 1;
      return found === null ? [] : [{ ...found, line: line + blankLines, scope: 'beginning' }];
    });
    const prose = [...comments, ...texts].flatMap(({ line, text }) =>
      entriesInProse(text).map(({ word, instead, index }) => ({
        word,
        instead,
        line: line + text.slice(0, index).split('\n').length - 1,
        scope: 'prose',
      })),
    );
    const ofNames = names.flatMap(({ line, name }) =>
      entriesInName(name, file).map(({ scope, word, instead }) => ({
        scope,
        word: name === word ? word : `${word}" in "${name}`,
        instead,
        line,
      })),
    );
    return [...beginnings, ...prose, ...ofNames]
      .filter(({ scope }) => isChecked(file, scope))
      .map((finding) => ({ file, ...finding }))
      .sort((one, other) => one.line - other.line);
  });
}

/** Maps each changed file to the numbers of its added lines. */
function addedLines() {
  const added = new Map();
  let file = '';
  let number = 0;
  for (const line of git('diff', '--unified=0', '--no-color', '--no-ext-diff', 'HEAD').split('\n')) {
    if (line.startsWith('+++ ')) {
      file = line.slice('+++ b/'.length);
      added.set(file, new Set());
    } else if (line.startsWith('@@')) number = Number(/\+(\d+)/.exec(line)[1]) - 1;
    else if (line.startsWith('+')) {
      number += 1;
      added.get(file).add(number);
    }
  }
  added.delete('');
  for (const path of untrackedFiles()) added.set(path, { has: () => true });
  return added;
}
