// npm run check: runs the checks of a change that take less than a minute. .githooks/pre-commit runs it.
import { runPart, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run check [-- <part>] [--help]',
  purpose: 'checks all types, and lint, words and unit tests of the changes since HEAD',
  duration: 'less than a minute',
  prerequisites: 'git; `git config core.hooksPath .githooks` runs it before each commit',
  details: `types       types of every source and test, as npm run typecheck
lint        Biome on everything
format      the same, with fixes
unused      files, exports and dependencies that nothing uses
words       added lines, against scripts/check/words.json; --all for all files
subjects    length and mood of commit subjects; <range> instead of origin/main..HEAD
tests       unit tests of changed code
migrations  checks that migrations can run while the previous release works; <file>… instead of those since the baseline`,
});

const PARTS = {
  types: () => import('./typecheck.mjs'),
  lint: () => import('./check/sources.mjs').then(({ lint }) => lint(['.'])),
  format: () => import('./check/sources.mjs').then(({ format }) => format()),
  unused: () => import('./check/sources.mjs').then(({ findUnused }) => findUnused()),
  words: () => import('./check/words.mjs').then(({ runWords }) => runWords()),
  subjects: () => import('./check/subjects.mjs'),
  tests: () => import('./check/tests.mjs').then(({ testChanged }) => testChanged()),
  migrations: () => import('./check/migrations.mjs'),
};

if (process.argv.length > 2) await runPart(USAGE, PARTS);
else {
  const { checkChange } = await import('./check/change.mjs');
  await checkChange();
}
