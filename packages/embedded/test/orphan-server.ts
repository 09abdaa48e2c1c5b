import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('./start-and-hang.mjs', import.meta.url));

/** Starts a server from another process, calls a function with it, and kills that process with SIGKILL. */
export async function orphanServer(
  start: 'startPostgres' | 'startRedis',
  options: object,
  beforeKill: (server: { url: string; pid: number }) => Promise<void>,
): Promise<number> {
  const parent = spawn(process.execPath, [SCRIPT, start, JSON.stringify(options)], {
    env: { ...process.env, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  const server = JSON.parse(line) as { url: string; pid: number };
  await beforeKill(server);
  const exit = once(parent, 'exit');
  parent.kill('SIGKILL');
  await exit;
  return server.pid;
}

/** Returns false for a zombie as well, because in a container there may be no process to reap it. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return !/\) Z /.test(stat);
}
