import { entriesInName, entriesInProse, entryAtBeginning, isChecked } from './word-list.mjs';

const HEADS = [
  'package',
  'comment lines',
  'with an entry',
  'per 1,000',
  'dangling beginnings',
  'identifiers',
  'with an entry',
  'texts with an entry',
];

/**
 * Counts findings by package, as a table of text.
 *
 * @param {({ file: string } & import('./word-sources.mjs').Contents)[]} read
 * @returns {string} with a row for each package, and one for all of them
 */
export function figuresOf(read) {
  const packages = [...new Set(read.map(({ file }) => packageOf(file)))].sort();
  const rows = packages.map((name) =>
    rowOf(
      name,
      read.filter(({ file }) => packageOf(file) === name),
    ),
  );
  const table = [HEADS, ...rows, rowOf('all', read)];
  const widths = HEADS.map((_, column) => Math.max(...table.map((cells) => cells[column].length)));
  return table
    .map((cells) =>
      cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]))),
    )
    .map((cells) => `${cells.join('  ')}\n`)
    .join('');
}

function rowOf(name, files) {
  const comments = files.flatMap((file) => file.comments);
  const lines = comments.flatMap(({ text }) => text.split('\n')).filter((line) => /\w/.test(line));
  const hits = lines.filter((line) => entriesInProse(line).length > 0).length;
  const dangling = comments.filter(({ text }) => entryAtBeginning(text.trimStart()) !== null).length;
  const names = files
    .filter(({ file }) => isChecked(file, 'part'))
    .flatMap((one) => one.names.map(({ name }) => ({ name, file: one.file })));
  const named = names.filter(({ name, file }) => entriesInName(name, file).length > 0);
  const texts = files
    .flatMap((file) => file.texts)
    .filter(({ text }) => entriesInProse(text).length > 0).length;
  const share = lines.length === 0 ? 0 : (hits * 1_000) / lines.length;
  return [
    name,
    ...[lines.length, hits, share.toFixed(1), dangling, countNames(names), countNames(named), texts].map(
      String,
    ),
  ];
}

function countNames(names) {
  return new Set(names.map(({ name }) => name)).size;
}

/** Returns the workspace folder of a file, or its top folder. */
function packageOf(file) {
  const [top, name] = file.split('/');
  if (name === undefined) return 'root';
  return ['packages', 'services', 'examples'].includes(top) ? `${top}/${name}` : top;
}
