// node clean-up-after.mjs <folder>: when standard input ends, because whoever started this closed it or was killed, ends
// the servers that still run on the folder and removes it. Servers outlive a terminal's Ctrl-C and a kill of the tests.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
process.stdin.resume().on('close', () => {
  for (const server of readdirSync(folder)) {
    for (const file of ['data/postmaster.pid', 'redis.pid']) {
      try {
        const pid = Number.parseInt(readFileSync(join(folder, server, file), 'utf8'), 10);
        // PostgreSQL's immediate shutdown; it ends Redis too, which may have been stopped by a fault.
        process.kill(pid, 'SIGQUIT');
        process.kill(pid, 'SIGCONT');
      } catch {
        // It has stopped, or never ran.
      }
    }
  }
  const disk = join(folder, 'disk');
  if (existsSync(disk)) spawnSync('umount', ['--lazy', disk], { stdio: 'ignore' });
  setTimeout(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }), 1_000);
});
