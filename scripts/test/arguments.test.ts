import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
  scripts: Record<string, string>;
};

/** Commands of npm by the file that they run, of those that read their arguments with arguments.mjs. */
const commands = Object.entries(scripts).flatMap(([name, command]) => {
  const [, file] = /^(?:exec )?node (scripts\/[\w-]+\.mjs)$/.exec(command) ?? [];
  if (file === undefined) return [];
  return readFileSync(`${root}/${file}`, 'utf8').includes("from './arguments.mjs'") ? [{ name, file }] : [];
});

function call(file: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], {
    cwd: root,
    encoding: 'utf8',
    timeout: 120_000,
  });
  return { status, stdout, stderr };
}

test('there is one place that reads arguments, and version.mjs, which npm calls', () => {
  const readers = readdirSync(`${root}/scripts`).filter(
    (file) => file.endsWith('.mjs') && /parseArgs\(/.test(readFileSync(`${root}/scripts/${file}`, 'utf8')),
  );
  expect(readers).toEqual(['arguments.mjs', 'version.mjs']);
});

test.each(commands)('$name says what it takes, and names what it does not', ({ name, file }) => {
  const { stdout, ...asked } = call(file, '--help');
  expect(asked).toEqual({ status: 0, stderr: '' });
  expect(stdout.startsWith(`usage: npm ${name === 'start' ? '' : 'run '}${name} `)).toBe(true);
  const refused = call(file, '--no-such-option');
  expect(refused).toMatchObject({ status: 2, stdout: '' });
  expect(refused.stderr).toContain("Unknown option '--no-such-option'");
  expect(refused.stderr).toContain(stdout);
});

test.each([
  ['chaos', ['--seeds', '0'], '--seeds is "0", and must be a whole number above 0'],
  ['chaos', ['--seed', ''], '--seed is "", and must be a whole number of at least 0'],
  ['chaos', ['--topology', 'ring'], '--topology is "ring", and must be one of sentinel, cluster,'],
  ['attack', ['--minutes', 'ten'], '--minutes is "ten", and must be a number above 0'],
  ['quiet-tab', ['--minutes', 'Infinity'], '--minutes is "Infinity", and must be a number above 0'],
  ['lighthouse', ['--runs', '1.5'], '--runs is "1.5", and must be a whole number above 0'],
  ['test:matrix', ['--node', '19'], '--node is "19", and must be one of 20,'],
  ['pack', ['nothing'], 'no published package is called nothing'],
  ['migrate-check', ['no-such-file.sql'], 'there is no file no-such-file.sql'],
  ['upgrade', ['--from', 'no-such-tag'], 'there is no release no-such-tag with migrations'],
  ['chaos', ['--older', 'no-such-tag'], 'there is no release no-such-tag with migrations'],
  ['prove-citus', [], '--bin is missing'],
])('%s %j: %s', (name, args, message) => {
  const file = commands.find((command) => command.name === name)?.file ?? '';
  const { status, stderr } = call(file, ...args);
  expect({ status, isNamed: stderr.startsWith(message) }).toEqual({ status: 2, isNamed: true });
});
