import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from '../shared/workspace.mjs';

/**
 * The last migration of the last release for which services stop: a release without it cannot run on this schema. Migrations up
 * to it may drop columns and rewrite tables; later ones may not.
 */
export const BASELINE = '20261127040000_standard_names';

/** The oldest PostgreSQL that is supported. */
const POSTGRES_VERSION = '15.0';
/** The first line of a migration that runs outside a transaction. packages/database/src/migration-script.ts reads it, too. */
const OUTSIDE_TRANSACTION = '-- One by one, outside a transaction.';
const REASON_CHARACTERS_MIN = 20;

/**
 * Squawk's rules on statements that lock tables or remove something. Its rules on timeouts are omitted, because the
 * migration runner sets timeouts.
 */
const SQUAWK_RULES = new Set([
  'adding-field-with-default',
  'adding-foreign-key-constraint',
  'adding-not-nullable-field',
  'adding-required-field',
  'adding-serial-primary-key-field',
  'ban-alter-domain-with-add-constraint',
  'ban-concurrent-index-creation-in-transaction',
  'ban-drop-column',
  'ban-drop-database',
  'ban-drop-table',
  'ban-truncate-cascade',
  'ban-uncommitted-transaction',
  'changing-column-type',
  'constraint-missing-not-valid',
  'disallowed-unique-constraint',
  'renaming-column',
  'renaming-table',
  'require-concurrent-index-creation',
  'require-concurrent-index-deletion',
  'require-concurrent-reindex',
  'transaction-nesting',
]);

/** Rules that squawk does not have. */
const OWN_RULES = [
  {
    rule: 'drops-what-is-called',
    form: /\bDROP\s+(?:MATERIALIZED\s+VIEW|VIEW|FUNCTION|PROCEDURE|TYPE|DOMAIN|SEQUENCE|SCHEMA|TRIGGER)\b/giu,
    message: 'The previous release may use it, so it must remain for one release.',
  },
  {
    rule: 'renames-what-is-called',
    form: /\bALTER\s+(?:VIEW|FUNCTION|TYPE|SEQUENCE|SCHEMA|TRIGGER)\b[^;]*\bRENAME\b/giu,
    message: 'The previous release uses the old name.',
  },
  {
    rule: 'locks-a-table',
    form: /(?:^|;)\s*(?:LOCK|VACUUM\s+FULL|TRUNCATE|CLUSTER)\b/giu,
    message: 'All other users of the table wait.',
  },
  {
    rule: 'writes-every-row',
    form: /(?:^|;)\s*(?:UPDATE|DELETE\s+FROM)\b(?![^;]*\bWHERE\b)[^;]*/giu,
    message: 'Every row is locked until the migration commits; maintenance can do it in batches.',
  },
];

/**
 * Checks one migration. A comment above a statement permits it despite a rule, for the lines up to the next empty one: `-- allows
 * <rule>, <rule>: <reason>`.
 *
 * @param {string} sql
 * @returns {{ line: number, rule: string, message: string }[]} lines count from 1; null if squawk has no program for this platform
 */
export function checkMigration(sql) {
  const found = squawkFindings(sql);
  if (found === null) return null;
  const findings = [...found, ...ownFindings(sql)];
  const allowances = readAllowances(sql);
  const left = findings.filter(({ line, rule }) => {
    const matching = allowances.filter(
      ({ rules, from, to, problem }) =>
        problem === null && rules.includes(rule) && from <= line && line <= to,
    );
    for (const allowance of matching) allowance.used.add(rule);
    return matching.length === 0;
  });
  const wrong = allowances.flatMap(({ from, rules, used, problem }) => {
    if (problem !== null) return [{ line: from, rule: 'allows', message: problem }];
    const unused = rules.filter((rule) => !used.has(rule));
    return unused.map((rule) => ({
      line: from,
      rule: 'allows',
      message: `No statement here violates ${rule}.`,
    }));
  });
  return [...left, ...wrong].sort((one, other) => one.line - other.line);
}

/** Returns the migrations after the baseline, oldest first. */
export function newMigrations() {
  return allMigrations().filter(({ name }) => name > BASELINE);
}

/** Returns the migrations with their names, oldest first. */
export function allMigrations() {
  const folder = join(root, 'prisma', 'migrations');
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, sql: readFileSync(join(folder, name, 'migration.sql'), 'utf8') }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function readAllowances(sql) {
  const lines = sql.split('\n');
  return lines.flatMap((text, index) => {
    const [, names, reason = ''] = /^\s*-- allows ([a-z, -]+?)(?::\s*(.*))?$/u.exec(text) ?? [];
    if (names === undefined) return [];
    const end = lines.findIndex((line, at) => at > index && line.trim() === '');
    const isReasoned = reason.trim().length >= REASON_CHARACTERS_MIN;
    return [
      {
        rules: names.split(',').map((name) => name.trim()),
        from: index + 1,
        to: end === -1 ? lines.length : end,
        used: new Set(),
        problem: isReasoned ? null : 'Give a reason after a colon that a reviewer can judge.',
      },
    ];
  });
}

/** Runs squawk. Returns null if squawk has no program for this platform. */
function squawkFindings(sql) {
  const squawk = createRequire(import.meta.url).resolve('squawk-cli/js/bin/squawk');
  const isOutside = sql.startsWith(OUTSIDE_TRANSACTION);
  const args = [
    '--reporter=json',
    `--pg-version=${POSTGRES_VERSION}`,
    ...(isOutside ? [] : ['--assume-in-transaction']),
  ];
  const { stdout } = spawnSync(process.execPath, [squawk, ...args], { input: sql, encoding: 'utf8' });
  if (!stdout.startsWith('[')) return null;
  return JSON.parse(stdout)
    .filter(({ rule_name: rule, level }) => SQUAWK_RULES.has(rule) || level === 'Error')
    .map(({ line, rule_name: rule, message }) => ({ line: line + 1, rule, message }));
}

function ownFindings(sql) {
  const sqlWithoutTexts = withoutTexts(sql);
  return OWN_RULES.flatMap(({ rule, form, message }) =>
    [...sqlWithoutTexts.matchAll(form)].map(({ index, 0: text }) => {
      const start = index + text.search(/[^\s;]/u);
      return { line: sqlWithoutTexts.slice(0, start).split('\n').length, rule, message };
    }),
  );
}

/** Replaces comments, strings and function bodies by blanks and keeps the lines, because their content does not run in the migration. */
function withoutTexts(sql) {
  const texts = /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|(\$\w*\$)[\s\S]*?\1/gu;
  return sql.replace(texts, (text) => text.replace(/[^\n]/gu, ' '));
}
