import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Clone, makeClone } from './clone.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
  scripts: Record<string, string>;
};
const names = Object.keys(scripts);
const fileOf = (name: string) => `scripts/${name.replace(':', '-')}.mjs`;
const PARTS = [
  ...['packages', 'golden'].map((part) => ['build', part]),
  ...['clients', 'chart', 'image', 'citus', 'dashboard', 'matrix'].map((part) => ['prove', part]),
  ...['compare', 'screenshots', 'lighthouse', 'quiet-tab'].map((part) => ['pictures', part]),
  ...[
    ['check', 'migrations'],
    ['check', 'subjects'],
    ['check', 'words'],
    ['bench', 'simulate'],
  ],
] as [script: string, part: string][];

let clone: Clone;

beforeAll(() => {
  clone = makeClone();
});

afterAll(() => clone.remove());

interface CommandResult {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs a script in a checkout without installed packages. Uses a thread, because a process for each of fifty calls costs twice as much. */
async function callInClone(name: string, ...argv: string[]): Promise<CommandResult> {
  const file = join(clone.folder, fileOf(name));
  const thread = new Worker(file, { argv, execArgv: [], stdin: true, stdout: true, stderr: true });
  const [[status], stdout, stderr] = await Promise.all([
    once(thread, 'exit') as Promise<[number]>,
    text(thread.stdout),
    text(thread.stderr),
  ]);
  return { status, stdout, stderr };
}

function expectHelp({ status, stdout, stderr }: CommandResult, command: string): void {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.startsWith(`usage: npm ${command} `) || stdout.startsWith(`usage: npm ${command}\n`)).toBe(
    true,
  );
  for (const label of ['Purpose', 'Duration', 'Prerequisites'])
    expect(stdout).toMatch(new RegExp(`^${label}: +\\S`, 'm'));
}

const commandOf = (name: string) => (['start', 'test', 'version'].includes(name) ? name : `run ${name}`);

test('package.json has at most 15 scripts, each of which runs the file of its name in scripts/', () => {
  expect(names.length).toBeLessThanOrEqual(15);
  for (const name of names) expect(scripts[name]).toMatch(new RegExp(`^(exec )?node ${fileOf(name)}$`));
  const entries = readdirSync(`${root}/scripts`).filter((file) => file.endsWith('.mjs'));
  expect(entries.map((file) => `scripts/${file}`).sort()).toEqual(names.map(fileOf).sort());
});

test.each(names)(
  '%s --help states purpose, duration and prerequisites before anything is installed',
  async (name) => {
    expectHelp(await callInClone(name, '--help'), commandOf(name));
  },
);

test.each(PARTS)('%s -- %s --help states purpose, duration and prerequisites', async (name, part) => {
  expectHelp(await callInClone(name, part, '--help'), `run ${name} -- ${part}`);
});

test.each(['build', 'check', 'prove', 'pictures'])(
  '%s lists its parts when its argument is an unknown one',
  async (name) => {
    const { status, stderr } = await callInClone(name, 'no-such-part');
    expect(status).toBe(2);
    expect(stderr).toContain('the part is "no-such-part", but must be one of ');
  },
);

test.each(['start', 'attack', 'chaos', 'upgrade', 'typecheck', 'version'])(
  '%s rejects an unknown option',
  async (name) => {
    const { status, stdout, stderr } = await callInClone(name, '--no-such-option');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain("Unknown option '--no-such-option'");
    expect(stderr).toContain('usage: npm ');
  },
);

test.each([
  ['chaos', ['--seeds', '0'], '--seeds is "0", but must be a whole number above 0'],
  ['chaos', ['--seed', ''], '--seed is "", but must be a whole number of at least 0'],
  ['chaos', ['--topology', 'ring'], '--topology is "ring", but must be one of sentinel, cluster,'],
  ['chaos', ['--older-release', 'no-such-tag'], 'there is no release no-such-tag with migrations'],
  ['attack', ['--minutes', 'ten'], '--minutes is "ten", but must be a number above 0'],
  ['upgrade', ['--from', 'no-such-tag'], 'there is no release no-such-tag with migrations'],
  [
    'pictures',
    ['quiet-tab', '--minutes', 'Infinity'],
    '--minutes is "Infinity", but must be a number above 0',
  ],
  ['pictures', ['lighthouse', '--runs', '1.5'], '--runs is "1.5", but must be a whole number above 0'],
  ['prove', ['matrix', '--node', '19'], '--node is "19", but must be one of 20,'],
  ['bench', ['--node', '19'], '--node is "19", but must be one of 20,'],
  ['prove', ['citus'], '--bin is missing'],
  ['build', ['packages', 'nothing'], 'no published package has the name nothing'],
  ['check', ['migrations', 'no-such-file.sql'], 'there is no file no-such-file.sql'],
])('%s %j exits with 2 and prints: %s', async (name, args, message) => {
  const { status, stderr } = await callInClone(name, ...args);
  expect({ status, isNamed: stderr.startsWith(message) }).toEqual({ status: 2, isNamed: true });
});

test('the help of npm run bench names every scenario', async () => {
  const source = readFileSync(`${root}/bench/src/options.ts`, 'utf8');
  const [, list = ''] = /SCENARIO_NAMES = \[([^\]]*)\]/.exec(source) ?? [];
  const scenarios = [...list.matchAll(/'([\w-]+)'/g)].map(([, scenario]) => scenario);
  expect(scenarios.length).toBeGreaterThan(10);
  expect((await callInClone('bench', '--help')).stdout).toContain(`scenarios: ${scenarios.join(' ')};`);
});
