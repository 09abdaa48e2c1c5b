// node cleanup-process.mjs <folder>: when standard input ends, because its parent closed it or was killed, ends the servers that
// still run on the folder and removes it. Servers survive Ctrl-C in a terminal and a kill of the tests.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
process.stdin.resume().on('close', () => {
  for (const server of readdirSync(folder)) {
    for (const file of ['data/postmaster.pid', 'redis.pid']) {
      try {
        const pid = Number.parseInt(readFileSync(join(folder, server, file), 'utf8'), 10);
        // SIGQUIT is PostgreSQL's immediate shutdown. It also ends Redis, which a fault may have stopped with SIGSTOP.
        process.kill(pid, 'SIGQUIT');
        process.kill(pid, 'SIGCONT');
      } catch {
        // The server has stopped or never ran.
      }
    }
  }
  const disk = join(folder, 'disk');
  if (existsSync(disk)) spawnSync('umount', ['--lazy', disk], { stdio: 'ignore' });
  setTimeout(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }), 1_000);
});
