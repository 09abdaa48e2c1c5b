import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run, spawnGroup } from '../../shared/command.mjs';
import { root } from '../../shared/workspace.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');

/** What a developer's shell may hold, and a test must never reach. */
const NOT_FOR_TESTS = [
  'DATABASE_URL',
  'QUEUE_URL',
  'REDIS_URL',
  'ENCRYPTION_KEYS',
  'PORT',
  'OPERATIONS_PORT',
  'RUNHOOK_HOME',
];

/**
 * Runs jest with its own progress on the terminal.
 *
 * @param {{ args: string[], environment: Record<string, string>, folder: string, signal: AbortSignal, within?: string[],
 *   tests?: 'short' | 'long' | 'all' }} options `within`: a program and its arguments that becomes jest; `tests`: without or only
 * those in *.long.test.ts, or both
 * @returns {Promise<{ isSuccess: boolean, passed: number, failed: number, skipped: number,
 *   files: { file: string, seconds: number }[], figures: { proof: string, figure: string }[] }>} a test file that could not run
 * counts as a failure; `figures` are for docs/proofs.md
 */
export async function runJest({ args, environment, folder, signal, within = [], tests = 'all' }) {
  const [resultsFile, figuresFile] = ['results.jsonl', 'figures.jsonl'].map((name) => join(folder, name));
  for (const file of [resultsFile, figuresFile]) await rm(file, { force: true });
  const [program, ...before] = [...within, process.execPath, JEST];
  const ofRun = { TEST_SELECTION: tests, TEST_RESULTS: resultsFile, PROOF_FIGURES: figuresFile };
  const env = { ...jestEnvironment(environment), ...ofRun };
  const code = await exitOf(program, [...before, ...args], { env, signal });
  const files = await readLines(resultsFile);
  const sum = (count) => files.reduce((total, file) => total + file[count], 0);
  return {
    isSuccess: code === 0,
    passed: sum('passed'),
    failed: sum('failed'),
    skipped: sum('skipped'),
    files,
    figures: await readLines(figuresFile),
  };
}

/** Returns the JSON of each line; nothing where there is no file. */
async function readLines(file) {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

/**
 * Returns the absolute paths of the test files that jest would run.
 *
 * @param {string[]} args
 * @param {{ tests?: 'short' | 'long' | 'all', signal?: AbortSignal }} [options]
 */
export async function listTests(args, { tests = 'short', signal } = {}) {
  const output = await run(process.execPath, [JEST, '--listTests', ...args], {
    cwd: root,
    env: { ...jestEnvironment({}), TEST_SELECTION: tests },
    signal,
    name: 'jest --listTests',
  });
  return output.split('\n').filter((line) => line.endsWith('.test.ts'));
}

/** With its workers, and what tests have started: none may talk to servers that are about to stop. */
function exitOf(file, args, { env, signal }) {
  return new Promise((resolve, reject) => {
    // Results go to the file, and all that is for people to stderr.
    const child = spawnGroup(file, args, { cwd: root, env, signal, stdio: ['ignore', 'ignore', 'inherit'] });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code));
  });
}

function jestEnvironment(environment) {
  const merged = { ...process.env, ...environment };
  for (const name of NOT_FOR_TESTS) delete merged[name];
  if (environment.TEST_REDIS_URL === undefined) delete merged.TEST_REDIS_URL;
  const options = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const isKnown = (option) => process.allowedNodeEnvironmentFlags.has(option.split('=')[0]);
  merged.NODE_OPTIONS = [process.env.NODE_OPTIONS, ...options.filter(isKnown)].filter(Boolean).join(' ');
  return merged;
}
