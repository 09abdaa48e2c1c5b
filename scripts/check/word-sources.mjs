import { basename } from 'node:path';
import { prepareUnitTests } from '../build/bootstrap.mjs';
import { bareComment, isDirective, lineFinder, scriptContents } from './script-contents.mjs';

/**
 * @typedef {{ line: number, text: string }} Passage a text with the line that it starts in
 * @typedef {{ comments: Passage[], texts: Passage[], names: { line: number, name: string }[] }} Contents
 */

const SCRIPT = /\.(?:ts|tsx|mts|mjs|cjs|js)$/;

/** Parsers of other languages, each a function from the text to its contents. The first pattern that matches the path counts. */
const OTHERS = [
  [/\.md$/, (text) => contents({ texts: proseOfPage(text) })],
  [
    /\.prisma$/,
    (text) => contents({ comments: lineComments(text, /^\s*\/\/+\s?(.*)$/), names: prismaNames(text) }),
  ],
  [
    /\.sql$/,
    (text) => contents({ comments: lineComments(text, /(?:^|\s)--\s?(.*)$/), names: sqlNames(text) }),
  ],
  [
    /\.py$/,
    (text) => contents({ comments: [...hashComments(text), ...docstrings(text)], names: pythonNames(text) }),
  ],
  [/\.css$/, (text) => contents({ comments: blockComments(text) })],
  [
    /\.json$/,
    (text) => contents({ texts: valuesOf(text, /"(?:title|description|summary)": "((?:[^"\\]|\\.)*)"/g) }),
  ],
  [/\.ya?ml$/, (text) => contents({ comments: hashComments(text), texts: valuesOf(text, YAML_TEXT) })],
  [
    /(?:\.(?:sh|toml|tpl)|(?:^|\/)(?:Dockerfile|run|pre-commit))$/,
    (text) => contents({ comments: hashComments(text) }),
  ],
];
const YAML_TEXT = /^\s*(?:summary|description|title):\s+(.*)$/gm;

let parser = null;

/**
 * Returns the comments, the texts for people and the names of a file, or null for a file of another type. Names are those that the file
 * declares, and its own name.
 *
 * @param {string} file relative to the checkout
 * @param {string} text
 * @returns {Promise<Contents | null>}
 */
export async function contentsOf(file, text) {
  const read = SCRIPT.test(file) ? await scriptReader() : OTHERS.find(([pattern]) => pattern.test(file))?.[1];
  if (read === undefined) return null;
  const found = read(text, file);
  const ownName = { line: 1, name: basename(file).replace(/\..*$/, '') };
  return { ...found, names: [ownName, ...found.names] };
}

function contents({ comments = [], texts = [], names = [] }) {
  return { comments, texts, names };
}

async function scriptReader() {
  parser ??= await importParser();
  return (text, file) => scriptContents(text, parser.parseSync(file, text));
}

/** rolldown is installed with the packages, which a new checkout lacks. */
async function importParser() {
  try {
    return await import('rolldown/utils');
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    await prepareUnitTests();
    return await import('rolldown/utils');
  }
}

/** Returns the lines of a page without code and addresses of links. */
function proseOfPage(text) {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    const isFence = /^\s*(?:```|~~~)/.test(line);
    if (isFence) isCode = !isCode;
    const bare = line.replaceAll(/\]\([^)]*\)/g, ']').replaceAll(/<[^>]*>/g, '');
    return isCode || isFence ? [] : [{ line: index + 1, text: bare }];
  });
}

/** Returns a comment for each block of lines that match the pattern, whose first group is the text. */
function lineComments(text, pattern) {
  const found = [];
  let lastLine = Number.NEGATIVE_INFINITY;
  for (const [index, line] of text.split('\n').entries()) {
    const [, comment] = pattern.exec(line) ?? [];
    if (comment === undefined) continue;
    if (lastLine === index - 1) found.at(-1).text += `\n${comment}`;
    else found.push({ line: index + 1, text: comment });
    lastLine = index;
  }
  return found.filter(({ text: bare }) => !isDirective(bare));
}

const hashComments = (text) => lineComments(text, /(?:^|\s)#+(?:\s(.*))?$/);

function docstrings(text) {
  const lineOf = lineFinder(text);
  return [...text.matchAll(/"""([\s\S]*?)"""/g)].map(({ 1: body, index }) => ({
    line: lineOf(index),
    text: body,
  }));
}

function blockComments(text) {
  const lineOf = lineFinder(text);
  return [...text.matchAll(/\/\*[\s\S]*?\*\//g)].map(({ 0: raw, index }) => ({
    line: lineOf(index),
    text: bareComment(raw),
  }));
}

function valuesOf(text, pattern) {
  const lineOf = lineFinder(text);
  return [...text.matchAll(pattern)].map(({ 1: value, index }) => ({ line: lineOf(index), text: value }));
}

const namesBy = (text, pattern) => {
  const lineOf = lineFinder(text);
  return [...text.matchAll(pattern)].flatMap(({ index, 0: _, ...groups }) =>
    Object.values(groups)
      .filter((name) => typeof name === 'string' && /^\w+$/.test(name))
      .map((name) => ({ line: lineOf(index), name })),
  );
};
const prismaNames = (text) => namesBy(text, /^ {2}(\w+) +\w|@{1,2}map\("(\w+)"\)|^model (\w+)/gm);
const pythonNames = (text) => namesBy(text, /^\s*(?:def|class) (\w+)|^\s*(\w+)\s*(?::[^=\n]+)?=[^=]/gm);
const sqlNames = (text) => namesBy(text.replaceAll(/--[^\n]*|'(?:[^']|'')*'/g, ''), /(\w+)/g);
