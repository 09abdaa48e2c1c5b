import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** The loop checks its parent itself, because nothing else would end it after the parent is killed. */
const LOOP =
  'const parent = Number(process.argv[1]); while (process.ppid === parent) for (let n = 0; n < 1e7; n += 1);';

/**
 * Keeps every core busy, and at least two, until this process ends.
 *
 * @returns {number[]} the pids of the loops
 */
export function startBusyLoops() {
  const count = Math.max(2, availableParallelism());
  const loops = Array.from({ length: count }, () => {
    const loop = spawn(process.execPath, ['-e', LOOP, String(process.pid)], { stdio: 'ignore' });
    loop.unref();
    return loop;
  });
  process.once('exit', () => {
    for (const loop of loops) loop.kill('SIGKILL');
  });
  return loops.map(({ pid }) => pid);
}
