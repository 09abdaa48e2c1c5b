// npm run check: runs the checks of a change that take less than a minute. .githooks/pre-commit runs it.
import { runPart, usage } from './shared/arguments.mjs';

const USAGE = usage({
  call: 'npm run check [-- <part>] [--help]',
  purpose: 'checks the types, and of what has changed since HEAD the lint, the words and the unit tests',
  duration: 'less than a minute',
  prerequisites: 'git; before each commit after `git config core.hooksPath .githooks`',
  details: `types       every source and test, as npm run typecheck
lint        Biome on everything
format      the same, and writes what it can fix
unused      files, exports and dependencies that nothing uses
words       added lines, against scripts/check/words.json
tests       unit tests of changed code
migrations  whether migrations can run while the previous release works; <file>… instead of those since the baseline`,
});

const PARTS = {
  types: () => import('./typecheck.mjs'),
  lint: () => import('./check/sources.mjs').then(({ lint }) => lint(['.'])),
  format: () => import('./check/sources.mjs').then(({ format }) => format()),
  unused: () => import('./check/sources.mjs').then(({ findUnused }) => findUnused()),
  words: () => import('./check/words.mjs').then(({ checkWords }) => checkWords()),
  tests: () => import('./check/tests.mjs').then(({ testChanged }) => testChanged()),
  migrations: () => import('./check/migrations.mjs'),
};

if (process.argv.length > 2) await runPart(USAGE, PARTS);
else {
  const { checkChange } = await import('./check/change.mjs');
  await checkChange();
}
