import { spawn } from 'node:child_process';

const KILL_AFTER_MS = 5_000;

/**
 * Spawns a command in a process group of its own, so that all it starts ends with it: nothing of a run that was cut
 * off may go on. An aborted `signal` sends SIGTERM to the group, and SIGKILL to what is left after five seconds.
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
    // Nobody is left in it.
  }
}
