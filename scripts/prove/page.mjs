// node scripts/prove/page.mjs: rewrites docs/proofs.md after a change to the catalogue and keeps its results.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root } from '../shared/workspace.mjs';
import { GROUPS, PROOFS } from './catalogue.mjs';

const PAGE = join(root, 'docs', 'proofs.md');
const INTRODUCTION = `# Proofs

Results of the proofs that \`npm test\` does not contain, because they take long or need programs that few machines have. The commands
write this page: a run that passes replaces its row, unless a covered path has uncommitted changes. Do not edit it by hand.

A proof is stale when a covered path has changed since its commit by more than comments. \`npm test\` lists the stale proofs, and \`npm version\` creates
no release while there is one. Other pages refer to the figures here. \`scripts/prove/catalogue.mjs\` lists the proofs and the paths
that each of them covers; the groups of paths are below the table.

| Proof | Shows that | Command | Passed on | Commit | Figures | Covers |
|---|---|---|---|---|---|---|
`;
const NEVER_RUN = { date: 'never', commit: '', figures: '' };
const read = () => (existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : '');
const code = (text) => `\`${text}\``;

/**
 * Returns the results on the page by the name of the proof. `date` is `never` for a proof without one.
 *
 * @returns {Record<string, { date: string, commit: string, figures: string }>}
 */
export function readResults() {
  const rows = read()
    .split('\n')
    .filter((line) => line.startsWith('| '));
  const cells = rows.map((row) => row.slice(2, -2).split(' | '));
  return Object.fromEntries(
    cells
      .filter(([name]) => name in PROOFS)
      .map(([name, , , date, commit, figures]) => [
        name,
        { date, commit: commit.replaceAll('`', '').trim(), figures: figures.trim() },
      ]),
  );
}

/** Returns the text of the page with these results. */
function renderPage(results) {
  const rows = Object.entries(PROOFS).map(([name, { shows, command, covers }]) => {
    const { date, commit, figures } = results[name] ?? NEVER_RUN;
    const covered = covers.map((path) => (path in GROUPS ? `*${path}*` : code(path))).join(', ');
    return [name, shows, code(command), date, commit && code(commit), figures, covered];
  });
  const table = rows.map((cells) => `| ${cells.join(' | ')} |\n`);
  const groups = Object.entries(GROUPS).map(
    ([name, paths]) => `- *${name}*: ${paths.map(code).join(', ')}\n`,
  );
  return [INTRODUCTION, ...table, '\n', ...groups].join('');
}

/** Replaces the result of a proof. @param {{ date: string, commit: string, figures: string }} result */
export function writeResult(name, result) {
  const figures = result.figures.replaceAll('|', '/').replaceAll('\n', ' ');
  writeFileSync(PAGE, renderPage({ ...readResults(), [name]: { ...result, figures } }));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(PAGE, renderPage(readResults()));
