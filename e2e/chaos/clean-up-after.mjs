// node clean-up-after.mjs <folder>: when standard input ends, because whoever started this closed it or was killed, ends
// the servers that still run on the folder and removes it. Servers outlive a terminal's Ctrl-C and a kill of the tests.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
process.stdin.resume().on('close', () => {
  for (const file of ['postgres/data/postmaster.pid', 'redis/redis.pid']) {
    try {
      // PostgreSQL's immediate shutdown; it ends Redis too.
      process.kill(Number.parseInt(readFileSync(join(folder, file), 'utf8'), 10), 'SIGQUIT');
    } catch {
      // It has stopped, or never ran.
    }
  }
  const disk = join(folder, 'disk');
  if (existsSync(disk)) spawnSync('umount', ['--lazy', disk], { stdio: 'ignore' });
  setTimeout(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }), 1_000);
});
