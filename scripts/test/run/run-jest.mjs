import { spawnSync } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run, spawnGroup } from '../../shared/command.mjs';
import { root } from '../../shared/workspace.mjs';

const JEST = join(root, 'node_modules', 'jest', 'bin', 'jest.js');

/** Time for jest to exit after its last test: a process that a test left running would keep it open forever. */
const EXIT_WITHIN_MS = 30_000;

/** Variables that a developer's shell may set and a test must not use. */
const REMOVED_VARIABLES = [
  'DATABASE_URL',
  'QUEUE_URL',
  'REDIS_URL',
  'ENCRYPTION_KEYS',
  'PORT',
  'OPERATIONS_PORT',
  'RUNHOOK_HOME',
];

/**
 * Runs jest and shows its progress on the terminal.
 *
 * @param {{ args: string[], environment: Record<string, string>, folder: string, signal: AbortSignal, within?: string[],
 * tests?: 'short' | 'long' | 'all', exitWithinMs?: number, print?: (text: string) => void }} options `within`: a program and its
 * arguments that executes jest; `tests`: without *.long.test.ts, only these, or all; `exitWithinMs`: time for jest to exit
 * after its last test; `print` is called with the processes that still run then
 * @returns {Promise<{ isSuccess: boolean, passed: number, failed: number, skipped: number,
 * files: { file: string, seconds: number }[], figures: { proof: string, figure: string }[] }>} a test file that could not run
 * counts as a failure; `figures` are for docs/proofs.md
 */
export async function runJest(options) {
  const { args, environment, folder, signal, within = [], tests = 'all' } = options;
  const { exitWithinMs = EXIT_WITHIN_MS, print = (text) => process.stderr.write(text) } = options;
  const [resultsFile, figuresFile] = ['results.jsonl', 'figures.jsonl'].map((name) => join(folder, name));
  for (const file of [resultsFile, figuresFile]) await rm(file, { force: true });
  const [program, ...before] = [...within, process.execPath, JEST];
  const runEnvironment = { TEST_SELECTION: tests, TEST_RESULTS: resultsFile, PROOF_FIGURES: figuresFile };
  const env = { ...jestEnvironment(environment), ...runEnvironment };
  const code = await waitForExit(program, [...before, ...args], { env, signal, exitWithinMs, print });
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

/** Returns the JSON of each line, or an empty list if the file is missing. */
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

/**
 * Returns jest's exit code, or null if jest was ended. All processes that its tests have started end with jest, because none may
 * call servers that are about to stop.
 */
function waitForExit(file, args, { env, signal, exitWithinMs, print }) {
  const killTimer = new AbortController();
  let timer;
  return new Promise((resolve, reject) => {
    // Results are written to the file, and messages to stderr. The channel signals the end of the last test.
    const child = spawnGroup(file, args, {
      cwd: root,
      env,
      signal: AbortSignal.any([signal, killTimer.signal]),
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    child.once('message', () => {
      timer = setTimeout(() => {
        const heading = `still running ${exitWithinMs / 1_000} s after the last test; ending`;
        print(`\n${heading}:\n${listProcesses(child.pid)}`);
        killTimer.abort();
      }, exitWithinMs);
    });
    child.once('error', reject);
    child.once('exit', (code) => resolve(killTimer.signal.aborted ? null : code));
  }).finally(() => clearTimeout(timer));
}

/** Returns a line for each process of a group except its leader. */
function listProcesses(group) {
  const { stdout } = spawnSync('ps', ['-A', '-ww', '-o', 'pgid=,pid=,args='], { encoding: 'utf8' });
  const lines = (stdout ?? '').split('\n').filter((line) => {
    const [pgid, pid] = line.trim().split(/\s+/).map(Number);
    return pgid === group && pid !== group;
  });
  return lines.map((line) => `${line}\n`).join('');
}

function jestEnvironment(environment) {
  const merged = { ...process.env, ...environment };
  for (const name of REMOVED_VARIABLES) delete merged[name];
  if (environment.TEST_REDIS_URL === undefined) delete merged.TEST_REDIS_URL;
  const options = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'];
  const isSupported = (option) => process.allowedNodeEnvironmentFlags.has(option.split('=')[0]);
  merged.NODE_OPTIONS = [process.env.NODE_OPTIONS, ...options.filter(isSupported)].filter(Boolean).join(' ');
  return merged;
}
