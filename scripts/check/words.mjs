import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../shared/workspace.mjs';
import { git, untrackedFiles } from './changed.mjs';

const { words, exceptedPaths, exceptedPhrases } = JSON.parse(
  readFileSync(new URL('./words.json', import.meta.url), 'utf8'),
);
const TEXT = /\.(md|ts|tsx|mjs|js|json|jsonc|ya?ml|sql|prisma|py|sh)$/;
/** Not within a path, a name or code in backquotes. */
const PATTERN = new RegExp(`(?<![\\w/.\`'-])(${Object.keys(words).join('|')})(?![\\w/\`'-])`, 'gi');

/**
 * Returns the words of the list in a line, without those in its exceptions.
 *
 * @param {string} line
 * @returns {{ word: string, instead: string }[]}
 */
function wordsIn(line) {
  const text = exceptedPhrases.reduce((rest, phrase) => rest.replaceAll(phrase, ''), line);
  return [...text.matchAll(PATTERN)].map(([word]) => ({ word, instead: words[word.toLowerCase()] }));
}

/** Prints the words of the list in the lines that were added since HEAD, and fails the command if there are any. */
export function checkWords() {
  const found = addedLines()
    .filter(({ file }) => TEXT.test(file) && !exceptedPaths.includes(file))
    .flatMap(({ file, number, text }) =>
      wordsIn(text).map((one) => ({ ...one, where: `${file}:${number}` })),
    );
  for (const { where, word, instead } of found)
    process.stderr.write(`${where}: "${word}"; write instead: ${instead}\n`);
  process.stdout.write(`words: ${found.length === 0 ? 'nothing to change' : `${found.length} to replace`}\n`);
  if (found.length > 0) process.exitCode = 1;
}

function addedLines() {
  const diff = git('diff', '--unified=0', '--no-color', '--no-ext-diff', 'HEAD');
  return [...linesOfDiff(diff), ...untrackedFiles().flatMap(linesOfFile)];
}

function linesOfDiff(diff) {
  let file = '';
  let number = 0;
  return diff.split('\n').flatMap((line) => {
    if (line.startsWith('+++ ')) file = line.slice('+++ b/'.length);
    else if (line.startsWith('@@')) number = Number(/\+(\d+)/.exec(line)[1]) - 1;
    else if (line.startsWith('+')) {
      number += 1;
      return [{ file, number, text: line.slice(1) }];
    }
    return [];
  });
}

function linesOfFile(file) {
  if (!TEXT.test(file)) return [];
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.map((text, index) => ({ file, number: index + 1, text }));
}
