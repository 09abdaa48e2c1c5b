import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Reports a command that failed. `output` has both streams in order. */
class CommandFailed extends Error {
  constructor(command, code, output) {
    super(`${command} ended with ${code}\n\n${output.trim()}`);
    this.name = 'CommandFailed';
    this.output = output;
  }
}

/**
 * Runs a command and returns its output without printing it. An aborted `signal` ends the command and all processes that it
 * started. `onLine` gets each line as it is written.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv, signal?: AbortSignal, onLine?: (line: string) => void, name: string }} options
 * `name` is used in messages
 * @returns {Promise<string>}
 */
export function run(file, args, { cwd, env = process.env, signal, onLine, name }) {
  return new Promise((resolve, reject) => {
    const child = spawnGroup(file, args, { cwd, env, signal, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
      if (onLine !== undefined) createInterface({ input: stream }).on('line', onLine);
    }
    child.once('error', (error) => reject(new CommandFailed(name, error.code ?? error.message, output)));
    child.once('close', (code, killedBy) => {
      if (code === 0) resolve(output);
      else reject(new CommandFailed(name, code ?? killedBy, output));
    });
  });
}

/**
 * Prints the name of the work while it runs, and its duration at the end.
 *
 * @template T
 * @param {string} name
 * @param {() => T | Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(name, work) {
  const startedAt = performance.now();
  process.stdout.write(`${name} … `);
  try {
    const result = await work();
    process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
    return result;
  } catch (error) {
    process.stdout.write('failed\n');
    throw error;
  }
}

const KILL_AFTER_MS = 5_000;

/**
 * Spawns a command in a separate process group, so that all processes that it starts end with it. An aborted `signal` sends SIGTERM
 * to the group, and SIGKILL to the remaining processes after five seconds.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions & { signal?: AbortSignal }} options
 */
export function spawnGroup(file, args, { signal, ...options }) {
  const child = spawn(file, args, { ...options, detached: true });
  let timer;
  const onAbort = () => {
    killGroup(child.pid, 'SIGTERM');
    timer = setTimeout(() => killGroup(child.pid, 'SIGKILL'), KILL_AFTER_MS);
  };
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  child.once('exit', () => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    killGroup(child.pid, 'SIGKILL');
  });
  return child;
}

function killGroup(pid, signal) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has no process left.
  }
}
