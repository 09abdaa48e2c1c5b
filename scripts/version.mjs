// Copies the version of the root package.json to all other files that contain it:
// npm version 1.2.3                      sets it there and runs this script (`version` in package.json)
// node scripts/version.mjs --check 1.2.3 checks that all files have it and CHANGELOG.md has a section on it
// node scripts/version.mjs --notes 1.2.3 prints that section
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { staleProofs } from './prove/proofs.mjs';
import { readArguments, usage } from './shared/arguments.mjs';
import { root, workspaceFolders } from './shared/workspace.mjs';

const VERSION_NUMBER = String.raw`\d+\.\d+\.\d+`;

/** The files with a copy, each with a pattern of the text that precedes it. */
const VERSION_FILES = [
  // Published packages get their version when they are packed.
  ...workspaceFolders()
    .map((folder) => join(folder, 'package.json'))
    .filter((file) => !JSON.parse(readFileSync(join(root, file), 'utf8')).publishConfig)
    .map((file) => [file, '^  "version": "']),
  ['packages/python/pyproject.toml', '^version = "'],
  ['Dockerfile', '^ARG VERSION='],
  ['k8s/production-base/kustomization.yaml', 'newTag: '],
  ['k8s/chart/Chart.yaml', '^(?:appV|v)ersion: '],
  ['packages/contract/src/signing.ts', 'Runhook/'],
  ['packages/testing/src/seed-log.ts', 'Runhook/'],
  ['services/management/src/subscriptions/sample-delivery.ts', 'Runhook/'],
  ['packages/client/src/client.ts', "VERSION = '"],
  ['docs/deployment.md', '(?:\\$target:|/dispatcher:|VERSION=)'],
];

const read = (file) => readFileSync(join(root, file), 'utf8');
const manifest = () => JSON.parse(read('package.json'));

/** Returns each copy with its file. `version` is null if a file has none. */
function readCopies() {
  return VERSION_FILES.filter(([file]) => existsSync(join(root, file))).flatMap(([file, before]) => {
    const found = [...read(file).matchAll(new RegExp(`(?<=${before})${VERSION_NUMBER}`, 'gm'))];
    return found.length === 0 ? [{ file, version: null }] : found.map(([version]) => ({ file, version }));
  });
}

function writeCopies(version) {
  for (const [file, before] of VERSION_FILES.filter(([file]) => existsSync(join(root, file)))) {
    const text = read(file).replace(new RegExp(`(?<=${before})${VERSION_NUMBER}`, 'gm'), version);
    writeFileSync(join(root, file), text);
  }
}

/** Returns the section of the changelog on a release, without its heading; null if it is missing. */
function readNotes(version) {
  const [, section] = read('CHANGELOG.md').split(
    new RegExp(`^## ${version.replaceAll('.', '\\.')}\\b.*$`, 'm'),
  );
  return section?.split(/^## /m)[0].trim() ?? null;
}

/** Returns the section with absolute links, because a release on GitHub resolves no relative ones. */
function releaseNotes(version) {
  const repository = manifest().repository.url.replace(/^git\+|\.git$/g, '');
  return (readNotes(version) ?? '').replace(/\]\((?!https:)/g, `](${repository}/blob/v${version}/`);
}

/** Compares the proofs with HEAD, because `npm version` has already changed package.json in the work tree. */
function requireCurrentProofs() {
  const stale = staleProofs({ until: 'HEAD' });
  if (stale !== null && stale.length === 0) return;
  const lines = stale?.map(({ name, reason }) => `  ${name}: ${reason}`) ?? [
    '  unknown: this is no git repository',
  ];
  process.stderr.write(
    `No release: docs/proofs.md has stale proofs. Run git restore package.json,\n` +
      `then the commands of the proofs, and commit the page:\n${lines.join('\n')}\n`,
  );
  process.exit(1);
}

function makeRelease() {
  requireCurrentProofs();
  const { version } = manifest();
  writeCopies(version);
  const day = new Date().toISOString().slice(0, 10);
  const text = read('CHANGELOG.md');
  if (readNotes(version) === null)
    writeFileSync(
      join(root, 'CHANGELOG.md'),
      text.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version} - ${day}`),
    );
  // `npm version` commits these files.
  execFileSync('git', ['add', '--update'], { cwd: root });
}

function check(expected) {
  const mismatches = [{ file: 'package.json', version: manifest().version }, ...readCopies()]
    .filter(({ version }) => version !== expected)
    .map(({ file, version }) => `${file} has ${version ?? 'no version'}, not ${expected}`);
  if (readNotes(expected) === null) mismatches.push(`CHANGELOG.md has no section ${expected}`);
  for (const line of mismatches) process.stderr.write(`${line}\n`);
  process.exitCode = mismatches.length === 0 ? 0 : 1;
}

const USAGE = usage({
  call: 'npm version <number>',
  purpose: 'makes a release: sets the version everywhere, dates the changelog, commits and tags',
  duration: 'seconds',
  prerequisites: 'a clean main with git, and no stale proof (docs/proofs.md)',
  details: `node scripts/version.mjs --check <number>  checks that every file and the changelog have that version
node scripts/version.mjs --notes <number>  prints the section of the changelog`,
});
const { values } = readArguments(USAGE, {
  options: { check: { type: 'string' }, notes: { type: 'string' } },
});
if (values.check !== undefined) check(values.check);
else if (values.notes !== undefined) process.stdout.write(`${releaseNotes(values.notes)}\n`);
else makeRelease();
