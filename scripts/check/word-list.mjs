import { readFileSync } from 'node:fs';

/** @typedef {'prose' | 'beginning' | 'part' | 'name'} Scope where an entry counts: prose, the beginning of a comment, a part of a name, a name */

const { entries, exceptions } = JSON.parse(readFileSync(new URL('./words.json', import.meta.url), 'utf8'));
const MIGRATION = /^prisma\/migrations\/([^/]+)\//;

const ofScope = (scope) => entries.filter(({ scopes }) => scopes.includes(scope));
const escaped = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const alternatives = (scope) =>
  ofScope(scope)
    .map(({ word }) => escaped(word).replaceAll(' ', '\\s+'))
    .sort((one, other) => other.length - one.length)
    .join('|');

const insteadOf = (scope, fold) => new Map(ofScope(scope).map(({ word, instead }) => [fold(word), instead]));
const lower = (word) => word.toLowerCase().replaceAll(/\s+/g, ' ');
const INSTEAD = {
  prose: insteadOf('prose', lower),
  beginning: insteadOf('beginning', (word) => word),
  part: insteadOf('part', lower),
  name: insteadOf('name', lower),
};

/** Matches the entries for prose, but not within a path or a name. */
const PROSE = new RegExp(`(?<![\\w/.'-])(${alternatives('prose')})(?![\\w/-]|'\\w)`, 'gi');
const BEGINNING = new RegExp(`^(${alternatives('beginning')})\\b`);
const LONGEST_PART = Math.max(...ofScope('part').map(({ word }) => word.split(' ').length));

/**
 * Returns the entries in a text. Code in backquotes does not count.
 *
 * @param {string} text
 * @returns {{ word: string, instead: string, index: number }[]}
 */
export function entriesInProse(text) {
  const bare = exceptions.phrases.reduce(
    (rest, { phrase }) => rest.replaceAll(phrase, blank),
    text.replaceAll(/`[^`]*`/g, blank),
  );
  return [...bare.matchAll(PROSE)].map(({ 0: word, index }) => ({
    word: word.replaceAll(/\s+/g, ' '),
    instead: INSTEAD.prose.get(lower(word)),
    index,
  }));
}

/** Returns the entry that a comment begins with, or null. */
export function entryAtBeginning(text) {
  const [, found] = BEGINNING.exec(text) ?? [];
  if (found === undefined) return null;
  const word = found.replaceAll(/\s+/g, ' ');
  return { word, instead: INSTEAD.beginning.get(word) };
}

/**
 * Returns the entries that are parts of a name or the complete name.
 *
 * @param {string} name in any case
 * @param {string} file that declares it, relative to the checkout
 */
export function entriesInName(name, file) {
  const exact = INSTEAD.name.get(lower(name));
  if (exact !== undefined) return [{ scope: 'name', word: name, instead: exact }];
  const parts = withoutExceptions(partsOf(name), file);
  const found = [];
  for (let length = LONGEST_PART; length > 0; length -= 1)
    for (let from = 0; from + length <= parts.length; from += 1) {
      const word = parts.slice(from, from + length).join(' ');
      const instead = INSTEAD.part.get(word);
      if (instead !== undefined) found.push({ scope: 'part', word, instead });
    }
  return found;
}

/** Replaces each excepted term with a part that no entry has. */
function withoutExceptions(parts, file) {
  const terms = exceptions.names.filter(({ path = '' }) => file.startsWith(path)).map(({ name }) => name);
  const text = terms.reduce((rest, term) => rest.replaceAll(` ${term} `, ' - '), ` ${parts.join(' ')} `);
  return text.trim().split(' ');
}

/** Splits names such as `isParked`, `parked_at` and `PARKED_MAX` into words in lower case. */
function partsOf(name) {
  return name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .split(/[^A-Za-z]+/)
    .map((part) => part.toLowerCase())
    .filter((part) => part !== '');
}

/**
 * Whether a file is checked for a scope, or at all when the scope is omitted.
 *
 * @param {string} file relative to the checkout
 * @param {Scope} [scope]
 */
export function isChecked(file, scope) {
  const [, migration] = MIGRATION.exec(file) ?? [];
  if (migration !== undefined && migration <= exceptions.migrationsUntil.name) return false;
  return !exceptions.paths.some(
    ({ path, scopes }) => file.startsWith(path) && (scopes?.includes(scope) ?? true),
  );
}

function blank(text) {
  return text.replaceAll(/[^\n]/g, ' ');
}
