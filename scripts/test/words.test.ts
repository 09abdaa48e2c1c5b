import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Clone, makeClone } from './clone.ts';

type Scope = 'prose' | 'beginning' | 'part' | 'name';
interface Entry {
  word: string;
  instead: string;
  scopes: Scope[];
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const { entries, exceptions } = JSON.parse(readFileSync(join(root, 'scripts/check/words.json'), 'utf8')) as {
  entries: Entry[];
  exceptions: { names: { name: string; path?: string }[] };
};
const { subjectProblem } = (await import(String(new URL('../check/subject-rules.mjs', import.meta.url)))) as {
  subjectProblem(subject: string): string | null;
};

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'runhook-words-'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function checkWords(cwd: string, ...args: string[]) {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/check.mjs', 'words', ...args], {
    cwd,
    encoding: 'utf8',
  });
  return { status, lines: stderr.split('\n').filter((line) => line !== '') };
}

/** Writes files and returns the findings in each, without the path. */
function findingsIn(files: Record<string, string>): Record<string, string[]> {
  const paths = Object.keys(files).map((name) => join(folder, name));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const { lines } = checkWords(root, ...paths);
  return Object.fromEntries(
    Object.keys(files).map((name) => {
      const found = lines.filter((line) => line.includes(`/${name}:`));
      return [name, found.map((line) => line.slice(line.indexOf(`/${name}:`) + name.length + 2))];
    }),
  );
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const SAMPLES: Record<Scope, (word: string) => string> = {
  prose: (word) => `// The dispatcher ${word} the event.\n`,
  beginning: (word) => `// ${word} follows.\n`,
  part: (word) => `const is${word.split(' ').map(capitalized).join('')}Now = true;\n`,
  name: (word) => `const ${word} = true;\n`,
};

test('the check of words fails for each entry in each of its scopes, with its replacement in the message', () => {
  const cases = entries.flatMap(({ word, instead, scopes }, index) =>
    scopes.map((scope) => ({ file: `${index}-${scope}.ts`, text: SAMPLES[scope](word), word, instead })),
  );
  const found = findingsIn(Object.fromEntries(cases.map(({ file, text }) => [file, text])));
  for (const { file, word } of cases)
    expect([file, found[file]]).toEqual([
      file,
      expect.arrayContaining([expect.stringMatching(new RegExp(`^1: .*"${word}".*; write instead: `))]),
    ]);
  for (const { file, instead } of cases) expect(found[file]?.join('\n')).toContain(instead);
});

test('the check of words accepts twenty sentences of good English', () => {
  const sentences = [
    'Returns the number of pending deliveries of an account.',
    'Limits the number of requests in flight to one endpoint.',
    'Must be called before the pool is closed, because it uses a connection.',
    'Whether the endpoint has responded within its timeout.',
    'The caller must call release() exactly once.',
    'A held lock is released when its transaction ends.',
    'Keeps the order of the deliveries of one run.',
    'The known subscriptions are loaded again after a change of their version.',
    'PostgreSQL keeps a generic plan until the next ANALYZE.',
    'The answer to a health check is never cached.',
    'Looks up the address of the host name, and checks it against the forbidden ranges.',
    'The turn of the year changes the name of the partition, not its format.',
    'A retry takes the place of the failed attempt in the schedule.',
    'The whole batch is rejected when one of its events is invalid.',
    'An endpoint that refuses connections is tried with a backoff.',
    'Several dispatchers work together on one queue.',
    'The job stays in the queue, with its attempts, until an operator removes it.',
    'No user can read the secret after it was created.',
    'Each worker fetches a job at any given moment.',
    'There is no room for another event when the buffer is full.',
  ];
  expect(sentences).toHaveLength(20);
  const found = findingsIn({
    'english.ts': sentences.map((sentence) => `// ${sentence}\n\n`).join(''),
    'english.md': sentences.join('\n'),
    'english.yaml': sentences.map((sentence) => `# ${sentence}\n\n`).join(''),
  });
  expect(found).toEqual({ 'english.ts': [], 'english.md': [], 'english.yaml': [] });
});

describe('the check of words in texts', () => {
  test('reads strings in logs, errors, test names and output of commands only', () => {
    const found = findingsIn({
      'strings.ts': [
        "export const state = 'nobody is told anew';",
        "logger.info({ id }, 'nobody listens');",
        'throw new RunError(`somebody changed it`);',
        "test('tells of the run', () => undefined);",
        "process.stderr.write('put off\\n');",
        "send('whoever');",
      ].join('\n'),
    });
    expect(found['strings.ts']?.map((line) => line.replace(/;.*/, ''))).toEqual([
      '2: "nobody"',
      '3: "somebody"',
      '4: "tells of"',
      '5: "put off"',
    ]);
  });

  test('omits code in backquotes, paths, links and fenced code', () => {
    const page = 'Calls `told`, see services/upkeep/x and [the page](told.md).\n```\nnobody\n```\n';
    expect(findingsIn({ 'page.md': page, 'code.ts': '// Calls `told` of services/upkeep/x.\n' })).toEqual({
      'page.md': [],
      'code.ts': [],
    });
  });

  test('reads names where they are declared, in any case, and not where they are used', () => {
    const found = findingsIn({
      'names.ts':
        'import { told } from "./a";\ntold.kept(told);\nconst { a, ...keptRows } = told;\nenum B { PARKED_MAX }\n',
      'names.py': 'def look_after(parked_at):\n    told = 1\n',
    });
    expect(found['names.ts']?.map((line) => line.replace(/;.*/, ''))).toEqual([
      '3: a name has "kept" in "keptRows"',
      '4: a name has "parked" in "PARKED_MAX"',
    ]);
    expect(found['names.py']).toHaveLength(3);
  });

  test('accepts an excepted term in names, but not its words in another order', () => {
    const terms = exceptions.names.filter(({ path }) => path === undefined).map(({ name }) => name);
    const found = findingsIn({
      'terms.ts': terms.map((term) => SAMPLES.part(term)).join(''),
      'reversed.ts': 'const aliveKeepMs = 1;\n',
    });
    expect(found['terms.ts']).toEqual([]);
    expect(found['reversed.ts']).toEqual([expect.stringContaining('"keep" in "aliveKeepMs"')]);
  });
});

test('the check of words finds nothing in the tracked files', () => {
  expect(checkWords(root, '--all')).toEqual({ status: 0, lines: [] });
});

describe('the check of words in a clone', () => {
  let clone: Clone;

  beforeAll(() => {
    clone = makeClone();
  });

  afterAll(() => clone.remove());

  test('reports entries in added lines only, with the line and the replacement', () => {
    expect(checkWords(clone.folder)).toEqual({ status: 0, lines: [] });
    const page = join(clone.folder, 'docs', 'README.md');
    appendFileSync(page, '\nThe receiver is told about it, and `told` is code, as is services/upkeep/x.\n');
    writeFileSync(join(clone.folder, 'new.md'), 'First line.\nWhoever calls it.\n');
    writeFileSync(join(clone.folder, 'new.py'), 'parked_at = 1\n');
    const { status, lines } = checkWords(clone.folder);
    expect(status).toBe(1);
    expect(lines).toEqual([
      expect.stringMatching(/^docs\/README\.md:\d+: "told"; write instead: recorded, /),
      'new.md:2: "Whoever"; write instead: the caller, a user: name the actor',
      'new.py:1: a name has "parked" in "parked_at"; write instead: deferred',
    ]);
    clone.commit('Add lines');
    expect(checkWords(clone.folder)).toEqual({ status: 0, lines: [] });
  });

  test('checks the subjects of the commits of a range', () => {
    const subjects = (range: string) =>
      spawnSync(process.execPath, ['scripts/check.mjs', 'subjects', range], {
        cwd: clone.folder,
        encoding: 'utf8',
      });
    clone.commit('queue: drop a job that has no data');
    expect(subjects('HEAD^..HEAD').status).toBe(0);
    clone.commit('queue: drops a job that has no data');
    const { status, stderr } = subjects('HEAD^^..HEAD');
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^\w+ "queue: drops .*": begin with a verb in the imperative instead of "drops"\n$/,
      ),
    ]);
  });
});

test.each([
  ['dispatcher: drop references held while awaiting commit', null],
  ['Revert "management, dispatcher: write the events of a transaction in one statement again"', null],
  ['Process events in batches', null],
  [`docs: ${'x'.repeat(30)} ${'y'.repeat(40)}`, '77 characters; at most 72 are permitted'],
  ['The dispatcher drops references', 'begin with a verb in the imperative instead of "The"'],
  ['queue: added a limit', 'begin with a verb in the imperative instead of "added"'],
  ['queue: adding a limit', 'begin with a verb in the imperative instead of "adding"'],
  ['fix', 'write a verb in the imperative and its object'],
])('the subject "%s" has the problem %j', (subject, problem) => {
  expect(subjectProblem(subject)).toBe(problem);
});
