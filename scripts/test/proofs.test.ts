import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Clone, makeClone } from './clone.ts';

interface Proof {
  covers: string[];
}

const part = async (name: string) => import(String(new URL(`../prove/${name}`, import.meta.url)));
const { PROOFS, pathsOf } = (await part('catalogue.mjs')) as {
  PROOFS: Record<string, Proof>;
  pathsOf(proof: Proof): string[];
};

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Statements on identities only, which are in no table of the log. */
const NOT_ON_LOG = new Set(['services/management/src/oidc/identities.ts']);
const SQL = /\b(SELECT|INSERT INTO|UPDATE|DELETE FROM)\b/;

function listFiles(...paths: string[]): string[] {
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...paths];
  return execFileSync('git', list, { cwd: root, encoding: 'utf8' }).trim().split('\n').filter(Boolean);
}

test('every path that a proof covers has files', () => {
  for (const proof of Object.values(PROOFS))
    for (const path of pathsOf(proof)) expect([path, listFiles(path).length > 0]).toEqual([path, true]);
});

test('the proof on Citus covers every statement on the log', () => {
  const covered = new Set(listFiles(...pathsOf(PROOFS['citus core'] as Proof)));
  const withSql = listFiles('services', 'packages/database/src').filter(
    (file) => /\/src\/.*\.ts$/.test(file) && SQL.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(withSql.length).toBeGreaterThan(30);
  expect(withSql.filter((file) => !covered.has(file) && !NOT_ON_LOG.has(file))).toEqual([]);
});

let clone: Clone;

function runInClone(statement: string) {
  const script = `import * as proofs from './scripts/prove/proofs.mjs'; ${statement}`;
  const options = { cwd: clone.folder, encoding: 'utf8' } as const;
  return spawnSync(process.execPath, ['--input-type=module', '--eval', script], options).stdout;
}

beforeAll(() => {
  clone = makeClone('services/dispatcher/src/record');
  symlinkSync(join(root, 'node_modules'), join(clone.folder, 'node_modules'));
});

afterAll(() => clone.remove());

test('docs/proofs.md matches the output of node scripts/prove/page.mjs', () => {
  const before = readFileSync(join(clone.folder, 'docs/proofs.md'), 'utf8');
  execFileSync(process.execPath, ['scripts/prove/page.mjs'], { cwd: clone.folder });
  expect(readFileSync(join(clone.folder, 'docs/proofs.md'), 'utf8')).toBe(before);
});

test('a proof that passed is current until the code of one of its paths changes, and a stale proof prevents a release', () => {
  const names = Object.keys(PROOFS);
  const recorded = runInClone(
    `for (const name of ${JSON.stringify(names)}) proofs.recordProof(name, ['5 tests passed']);`,
  );
  for (const name of names) expect(recorded).toContain(`proof ${name}: written`);
  clone.commit('Record the proofs');
  expect(runInClone('proofs.printStaleProofs();')).toContain(' current, 0 stale\n');

  const source = join(clone.folder, 'services/dispatcher/src/record/attempts.ts');
  appendFileSync(source, '// A comment.\n');
  expect(runInClone('proofs.printStaleProofs();')).toContain(' current, 0 stale\n');

  appendFileSync(source, 'export const CHANGED = true;\n');
  const stale = runInClone('proofs.printStaleProofs();');
  expect(stale).toMatch(
    /^ {2}citus core: passed on .*; changed since: services\/dispatcher\/src\/record\/attempts/m,
  );
  expect(stale).not.toMatch(/^ {2}chart:/m);
  const dirty = runInClone(`proofs.recordProof('citus core', ['6 tests passed']);`);
  expect(dirty).toContain(
    'docs/proofs.md is not updated, because of uncommitted changes: services/dispatcher',
  );
  expect(readFileSync(join(clone.folder, 'docs/proofs.md'), 'utf8')).not.toContain('6 tests passed');

  clone.commit('Change a statement');
  const release = spawnSync(process.execPath, ['scripts/version.mjs'], {
    cwd: clone.folder,
    encoding: 'utf8',
  });
  expect(release.status).toBe(1);
  expect(release.stderr).toContain('  citus core: passed on ');
});

test('a proof whose topologies were all skipped keeps its row', () => {
  const results = {
    isSuccess: true,
    figures: [{ proof: 'chaos partition', figure: 'skipped: no network' }],
  };
  const output = runInClone(
    `proofs.recordTests('chaos partition', ${JSON.stringify(results)}, { isCounted: false });`,
  );
  expect(output).toContain('is not updated, because everything was skipped: no network');
});
