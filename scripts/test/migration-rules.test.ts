import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';

interface Finding {
  line: number;
  rule: string;
  message: string;
}

interface Migration {
  name: string;
  sql: string;
}

const { BASELINE, allMigrations, checkMigration, newMigrations } = (await import(
  String(new URL('../check/migration-rules.mjs', import.meta.url))
)) as {
  BASELINE: string;
  allMigrations(): Migration[];
  checkMigration(sql: string): Finding[] | null;
  newMigrations(): Migration[];
};

const migrations = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));
const isReleaseAvailable = checkMigration('SELECT 1;') !== null;
if (!isReleaseAvailable)
  process.stderr.write('\nnew migrations were not checked: squawk has no program for this platform\n');
const rulesOf = (sql: string) => checkMigration(sql)?.map(({ line, rule }) => `${line} ${rule}`);

const { findIncompatibility } = (await import(
  String(new URL('../upgrade/older-release.mjs', import.meta.url))
)) as {
  findIncompatibility(release: string): string | null;
};
const git = (...args: string[]) =>
  spawnSync('git', args, { cwd: migrations, encoding: 'utf8' }).stdout.trim();
const releaseBeforeBaseline = git('log', '--format=%h^', '--diff-filter=A', '--', BASELINE);
const hasHistory = git('rev-parse', '--verify', releaseBeforeBaseline) !== '';

test('no migration after the baseline requires that the services stop', () => {
  for (const { name, sql } of newMigrations())
    expect([name, /services (?:stop|stand still)/u.test(sql)]).toEqual([name, false]);
});

(hasHistory ? test : test.skip)('a release older than the baseline migration is incompatible', () => {
  expect(findIncompatibility(releaseBeforeBaseline)).toContain(
    `must stop for ${BASELINE}: see docs/upgrading.md`,
  );
  expect(findIncompatibility('HEAD')).toBeNull();
  expect(findIncompatibility('no-release')).toBe('there is no release no-release with migrations');
});

(isReleaseAvailable ? describe : describe.skip)('migrations', () => {
  test('neither lock tables for long nor remove anything after the baseline', () => {
    expect(allMigrations().map(({ name }) => name)).toContain(BASELINE);
    for (const { name, sql } of newMigrations()) expect([name, checkMigration(sql)]).toEqual([name, []]);
  });

  test('are rejected by a named rule if they lock a table for long or remove something', () => {
    const rejected: [sql: string, rule: string][] = [
      ['ALTER TABLE runs DROP COLUMN status;', 'ban-drop-column'],
      ['DROP TABLE runs;', 'ban-drop-table'],
      ['ALTER TABLE runs RENAME COLUMN status TO state;', 'renaming-column'],
      ['ALTER TABLE runs RENAME TO jobs;', 'renaming-table'],
      ['ALTER TABLE runs ALTER COLUMN id TYPE text;', 'changing-column-type'],
      ['ALTER TABLE runs ADD COLUMN owner text NOT NULL;', 'adding-required-field'],
      ['ALTER TABLE runs ALTER COLUMN owner SET NOT NULL;', 'adding-not-nullable-field'],
      ['ALTER TABLE runs ADD COLUMN at timestamptz DEFAULT clock_timestamp();', 'adding-field-with-default'],
      ['ALTER TABLE runs ADD CONSTRAINT few CHECK (id > 1);', 'constraint-missing-not-valid'],
      ['CREATE INDEX of_owner ON runs (owner);', 'require-concurrent-index-creation'],
      ['DROP INDEX of_owner;', 'require-concurrent-index-deletion'],
      ['CREATE INDEX CONCURRENTLY of_owner ON runs (owner);', 'ban-concurrent-index-creation-in-transaction'],
      ['DROP FUNCTION epoch_micros(timestamptz);', 'drops-what-is-called'],
      ['ALTER VIEW logged_attempts RENAME TO attempts_log;', 'renames-what-is-called'],
      ['LOCK TABLE runs;', 'locks-a-table'],
      ['UPDATE runs SET owner = $$where$$;', 'writes-every-row'],
    ];
    const found = rulesOf(rejected.map(([sql]) => sql).join('\n'));
    for (const [index, [, rule]] of rejected.entries()) expect(found).toContain(`${index + 1} ${rule}`);
  });

  test('are accepted if they only add, whatever function bodies, strings and comments contain', () => {
    const passes = [
      'ALTER TABLE runs ADD COLUMN owner text;',
      "ALTER TABLE runs ADD COLUMN kind text NOT NULL DEFAULT 'plain';",
      'ALTER TABLE runs ADD CONSTRAINT few CHECK (id > 1) NOT VALID;',
      'CREATE TABLE t (id bigint PRIMARY KEY);\nCREATE INDEX of_id ON t (id);',
      'CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ UPDATE runs SET id = 1; TRUNCATE runs $$;',
      'CREATE TRIGGER g BEFORE TRUNCATE ON runs EXECUTE FUNCTION f();',
      "UPDATE runs SET owner = 'nobody' WHERE id = 1;",
      "COMMENT ON TABLE runs IS 'DROP VIEW x; TRUNCATE y'; -- LOCK TABLE",
    ];
    expect(rulesOf(passes.join('\n'))).toEqual([]);
    const index = 'CREATE INDEX CONCURRENTLY IF NOT EXISTS of_owner ON runs (owner);';
    expect(rulesOf(`-- One by one, outside a transaction.\n${index}`)).toEqual([]);
  });

  test('may break a rule that a comment allows with a reason, and a comment may allow only rules that are broken', () => {
    const reason = 'nothing since 0.2.0 reads it, and 0.1.0 is two releases ago.';
    const drop = 'ALTER TABLE runs\n  DROP COLUMN status;';
    expect(rulesOf(`-- allows ban-drop-column: ${reason}\n${drop}\n`)).toEqual([]);
    expect(rulesOf(`-- allows ban-drop-column\n${drop}\n`)).toEqual(['1 allows', '3 ban-drop-column']);
    expect(rulesOf(`-- allows ban-drop-column: ok\n${drop}\n`)).toEqual(['1 allows', '3 ban-drop-column']);
    expect(rulesOf(`-- allows ban-drop-column: ${reason}\n\n${drop}\n`)).toEqual([
      '1 allows',
      '4 ban-drop-column',
    ]);
    expect(rulesOf(`-- allows ban-drop-table, ban-drop-column: ${reason}\n${drop}\n`)).toEqual(['1 allows']);
  });

  test('are rejected if they are not valid SQL', () => {
    expect(checkMigration('ALTER TABEL runs;')).not.toEqual([]);
  });
});
