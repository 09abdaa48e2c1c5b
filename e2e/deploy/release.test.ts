import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { checkout as root } from './manifests.ts';
import { issueFormProblems, workflowProblems } from './schema-problems.ts';

const read = (path: string) => readFileSync(join(root, path), 'utf8');
const manifestOf = (folder: string) => JSON.parse(read(join(folder, 'package.json')));
const folders = execFileSync('git', ['ls-files', 'package.json', '*/package.json'], {
  cwd: root,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .map(dirname);
const workflows = readdirSync(join(root, '.github', 'workflows')).map((name) =>
  join('.github', 'workflows', name),
);
const readYaml = (...path: string[]) => parse(read(join('.github', ...path)));

function versionScript(...args: string[]) {
  const all = [join(root, 'scripts', 'version.mjs'), ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, all, { encoding: 'utf8' });
  return { status, stdout, problems: stderr.split('\n').filter((line) => line !== '') };
}

test('every copy of the version equals that of the root package.json, and the changelog has a section on it', () => {
  const { version } = manifestOf('.');
  expect(versionScript('--check', version)).toEqual({ status: 0, stdout: '', problems: [] });
  expect(versionScript('--notes', version).stdout).toMatch(/^### Added\n/);
  const { status, problems } = versionScript('--check', '99.0.0');
  expect([status, problems.length > folders.length + 5]).toEqual([1, true]);
  expect(problems).toContain('CHANGELOG.md has no section 99.0.0');
});

test('release notes link to the pages of their release, because a release has no relative links', () => {
  expect(versionScript('--notes', 'Unreleased').stdout).not.toMatch(/\]\((?!https:)/);
});

test('every package has the licence Apache-2.0, whose text is in LICENSE', () => {
  for (const folder of folders) expect([folder, manifestOf(folder).license]).toEqual([folder, 'Apache-2.0']);
  expect(read('LICENSE')).toMatch(/^\s+Apache License\n\s+Version 2\.0, January 2004/);
});

test('workflows pin actions to a commit, with its release in a comment, and have only read permission by default', () => {
  for (const workflow of workflows) {
    const text = read(workflow);
    expect(text).toMatch(/^permissions: \{ contents: read \}$/m);
    const used = [...text.matchAll(/uses: (.+)/g)].map(([, action = '']) => action);
    const unpinned = used.filter((action) => !/^\S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action));
    expect(unpinned.filter((action) => !action.startsWith('./'))).toEqual([]);
  }
});

test('jobs that may publish pin their tools to a version', () => {
  const jobs: Record<string, { permissions?: Record<string, string>; steps?: object[] }> = readYaml(
    'workflows',
    'release.yml',
  ).jobs;
  const publishing = Object.entries(jobs).filter(
    ([, { permissions }]) => permissions?.['id-token'] === 'write',
  );
  expect(publishing.map(([name]) => name)).toEqual(['images', 'packages', 'python', 'chart']);
  for (const [name, { steps = [] }] of publishing) {
    const text = JSON.stringify(steps);
    expect([name, text.match(/pipx run|npx |go (run|install) [^\s"@]+@(?!v\d+\.\d+\.\d+")/g)]).toEqual([
      name,
      null,
    ]);
    for (const [, node] of text.matchAll(/"node-version":([^,}]+)/g))
      expect(node).toMatch(/^"\d+\.\d+\.\d+"$/);
    const installers = text.match(/cosign-installer@/g) ?? [];
    expect(text.match(/"cosign-release":"v\d+\.\d+\.\d+"/g) ?? []).toHaveLength(installers.length);
  }
});

test('CI looks for known vulnerabilities, and updates of packages wait until others have noticed bad releases', () => {
  const { jobs } = readYaml('workflows', 'ci.yml');
  expect(JSON.stringify(jobs.vulnerabilities)).toContain('osv-scanner@v2.');
  expect(JSON.stringify(jobs['dependency-review'])).toContain('actions/dependency-review-action@');
  const { updates } = readYaml('dependabot.yml') as {
    updates: { 'package-ecosystem': string; cooldown: object }[];
  };
  expect(updates.map((one) => one['package-ecosystem'])).toEqual(expect.arrayContaining(['npm', 'docker']));
  for (const { cooldown } of updates) expect(cooldown).toEqual({ 'default-days': expect.any(Number) });
});

test('scripts/build/pin-images.mjs lists every image of another publisher that has no digest', () => {
  const script = join(root, 'scripts', 'build', 'pin-images.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  const files = ['Dockerfile', 'docker-compose.yml'];
  const references = files.flatMap((file) => [...read(file).matchAll(/^(?:FROM| *image:) ([a-z]+:\S+)/gm)]);
  expect(references.length).toBeGreaterThan(3);
  const unpinned = references.filter(([, image]) => !image?.includes('@sha256:'));
  for (const [, image] of unpinned) expect(stderr).toContain(image);
  expect(status).toBe(unpinned.length === 0 && stderr === '' ? 0 : 1);
});

test('every npm script and file that a workflow runs exists', () => {
  const { scripts } = manifestOf('.');
  const text = workflows.map(read).join('\n');
  const runs = [...text.matchAll(/npm run ([\w-]+)/g)].map(([, name]) => name as string);
  expect(runs.filter((name) => !(name in scripts))).toEqual([]);
  const files = [...text.matchAll(/(?<=run: |node )(\.ci\/\w+|scripts\/[\w.-]+)/g)].map(
    ([, file]) => file as string,
  );
  expect(files).toEqual(expect.arrayContaining(['.ci/run', 'scripts/version.mjs']));
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test('only the packed packages are published, and the packages of the checkout are private', () => {
  for (const workflow of workflows)
    expect(read(workflow)).toMatch(
      /npm run build -- packages --out .*\n(?:.*\n){0,8}.*npm publish "\$tarball"/,
    );
  for (const folder of folders) expect([folder, manifestOf(folder).private]).toEqual([folder, true]);
});

test('actionlint reports nothing for the workflows, if it is installed', () => {
  if (spawnSync('actionlint', ['--version']).error) {
    process.stderr.write(
      '\nactionlint is not on the path: the workflows were checked by their schema only\n',
    );
    return;
  }
  const { status, stdout } = spawnSync('actionlint', [], { cwd: root, encoding: 'utf8' });
  expect([status, stdout]).toEqual([0, '']);
});

test('the workflows match the schema of GitHub', () => {
  const names = workflows.map((path) => basename(path));
  expect(names).toEqual(['ci.yml', 'release.yml']);
  for (const name of names) expect([name, workflowProblems(readYaml('workflows', name))]).toEqual([name, []]);
  expect(workflowProblems({ on: 'push', jobs: { a: { 'runs-on': 'x', step: [] } } })).not.toEqual([]);
});

test('the issue forms match the schema of GitHub', () => {
  for (const name of ['bug.yml', 'feature.yml'])
    expect([name, issueFormProblems(readYaml('ISSUE_TEMPLATE', name))]).toEqual([name, []]);
});

test('CI runs the suite on Node 20, 22, 24 and 26, PostgreSQL 15 to 18, Redis 7 and 8, and Valkey 8 and 9', () => {
  const rows: { node: number; postgres: string; queue: string }[] = readYaml('workflows', 'ci.yml').jobs.suite
    .strategy.matrix.include;
  const valuesOf = (key: keyof (typeof rows)[number]) => [...new Set(rows.map((row) => row[key]))].sort();
  expect(valuesOf('node')).toEqual([20, 22, 24, 26]);
  expect(valuesOf('postgres')).toEqual(['postgres:15', 'postgres:16', 'postgres:17', 'postgres:18']);
  expect(valuesOf('queue')).toEqual(['redis:7', 'redis:8', 'valkey/valkey:8', 'valkey/valkey:9']);
});
