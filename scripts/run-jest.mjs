import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from './workspace.mjs';

const KILL_AFTER_MS = 5_000;
/** What a developer's shell may hold, and a test must never reach. */
const NOT_FOR_TESTS = ['DATABASE_URL', 'QUEUE_URL', 'REDIS_URL', 'ENCRYPTION_KEYS', 'PORT', 'RUNHOOK_HOME'];

/**
 * Runs jest with its own progress on the terminal.
 *
 * @param {{ args: string[], environment: Record<string, string>, folder: string, signal: AbortSignal }} options
 * @returns {Promise<{ isSuccess: boolean, passed: number, failed: number, skipped: number }>} a test file that could
 * not run counts as a failure
 */
export async function runJest({ args, environment, folder, signal }) {
  const results = join(folder, 'jest.json');
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const code = await inOwnGroup(process.execPath, [jest, '--json', `--outputFile=${results}`, ...args], {
    env: jestEnvironment(environment),
    signal,
  });
  const report = JSON.parse(await readFile(results, 'utf8').catch(() => '{}'));
  const { numPassedTests = 0, numFailedTests = 0, numPendingTests = 0, numTodoTests = 0 } = report;
  return {
    isSuccess: code === 0,
    passed: numPassedTests,
    failed: numFailedTests + (report.numRuntimeErrorTestSuites ?? 0),
    skipped: numPendingTests + numTodoTests,
  };
}

/**
 * In a process group of its own, so that its workers, and what tests have started, go with it: nothing of a run that
 * was cut off may go on and talk to servers that are about to stop.
 */
function inOwnGroup(file, args, { env, signal }) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(null);
    // JSON goes to the file, and all that is for people to stderr.
    const child = spawn(file, args, {
      cwd: root,
      env,
      detached: true,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    let timer;
    const onAbort = () => {
      killGroup(child.pid, 'SIGTERM');
      timer = setTimeout(() => killGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      killGroup(child.pid, 'SIGKILL');
      resolve(code);
    });
  });
}

function killGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody is left in it.
  }
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
