import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** It looks after its parent itself: nobody stops it when that is killed. */
const LOOP =
  'const parent = Number(process.argv[1]); while (process.ppid === parent) for (let n = 0; n < 1e7; n += 1);';

/**
 * Keeps every core busy, two at least, until this process ends in whatever way.
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
