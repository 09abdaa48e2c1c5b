import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const TEXT = /\.(ts|tsx|mjs|js|json|md|sql|prisma|ya?ml|sh|css)$|(^|\/)(Dockerfile|run)$/;
const OWN_PATH = 'scripts/test/citations.test.ts';

const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => TEXT.test(path) && path !== OWN_PATH && existsSync(join(root, path)));

/** Returns the anchors of a page, as forges derive them from its headings. */
function listAnchors(path: string): Set<string> {
  const headings = readFileSync(join(root, path), 'utf8').matchAll(/^#+ +(.+?) *$/gm);
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
  return new Set([...headings].map(([, heading]) => slug(heading as string)));
}

function listLines(path: string): { line: string; where: string }[] {
  const lines = readFileSync(join(root, path), 'utf8').split('\n');
  return lines.map((line, index) => ({ line, where: `${path}:${index + 1}` }));
}

/** Returns null if the page exists and has the heading, if there is one. */
function findProblem(page: string, anchor: string | undefined): string | null {
  if (!existsSync(join(root, page))) return `${page} does not exist`;
  if (anchor && page.endsWith('.md') && !listAnchors(page).has(anchor))
    return `${page} has no heading #${anchor}`;
  return null;
}

test('every page and heading of docs/ that the code cites exists', () => {
  const wrong = files
    // An applied migration never changes, so its citations do not either.
    .filter((path) => !path.endsWith('.md') && !path.startsWith('prisma/migrations/'))
    .flatMap(listLines)
    .flatMap(({ line, where }) =>
      [...line.matchAll(/\bdocs\/[\w/-]+\.md(?:#([\w-]+))?/g)].map(([cited, anchor]) => ({
        where,
        problem: findProblem(cited.replace(/#.*/, ''), anchor),
      })),
    )
    .filter(({ problem }) => problem !== null);
  expect(wrong).toEqual([]);
});

test('every relative link of the documentation has a target', () => {
  const wrong = files
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      listLines(path).flatMap(({ line, where }) =>
        [...line.matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([\w-]+))?\)/g)].map(([, target, anchor]) => {
          const page = target ? normalize(join(dirname(path), decodeURI(target))) : path;
          return { where, problem: findProblem(page, anchor) };
        }),
      ),
    )
    .filter(({ problem }) => problem !== null);
  expect(wrong).toEqual([]);
});

test('every file that the pages on the code name exists', () => {
  const repositoryFiles = new Set(
    execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' }).split(
      '\n',
    ),
  );
  const FOLDERS = ['', 'services/management/src/', 'services/dispatcher/src/'];
  const wrong = ['docs/architecture.md', 'docs/contributing.md', 'docs/contract.md']
    .flatMap(listLines)
    .flatMap(({ line, where }) =>
      [...line.matchAll(/`([\w-][\w/.-]*\.(?:ts|tsx|mjs|prisma))`/g)]
        .map(([, name]) => name as string)
        .filter((name) => name.includes('/') && !FOLDERS.some((folder) => repositoryFiles.has(folder + name)))
        .map((name) => ({ where, name })),
    );
  expect(wrong).toEqual([]);
});

test('every ADR that is cited by its number exists', () => {
  const list = files.flatMap((path) => /^docs\/adr\/0*(\d+)-/.exec(path)?.[1] ?? []);
  const numbers = new Set(list);
  const wrong = files
    .flatMap(listLines)
    .flatMap(({ line, where }) =>
      [...line.matchAll(/\bADR (\d+)\b/g)].map(([, number]) => ({ where, number })),
    )
    .filter(({ number }) => !numbers.has(number as string));
  expect(wrong).toEqual([]);
  // A deleted record leaves its number unused.
  expect(list).toHaveLength(numbers.size);
});

test('no file refers to a page outside of the repository', () => {
  const OUTSIDE =
    /\b(DESIGN|STYLE)(\.md)?,? (section|§)|\b[Ss]pec,? sections? \d|\bshared\/(spec|DESIGN|STYLE)/;
  const wrong = files.flatMap(listLines).filter(({ line }) => OUTSIDE.test(line));
  expect(wrong).toEqual([]);
});

test('README stays under 150 lines, and docs/README.md has each page of the folder in one line', () => {
  expect(listLines('README.md').length).toBeLessThan(150);
  const pages = files.filter((path) => /^docs\/[^/]+\.md$/.test(path) && path !== 'docs/README.md');
  const index = listLines('docs/README.md').map(({ line }) => /^\| \[\S+\]\((\S+\.md)\) \|/.exec(line)?.[1]);
  const listed = index.filter((page) => page !== undefined && page !== 'adr/README.md');
  expect(listed.map((page) => `docs/${page}`).sort()).toEqual(pages.sort());
});
