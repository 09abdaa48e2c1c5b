import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Ends what the benchmark started when the benchmark itself is killed and cannot: see programs/guard.ts. */
export interface Guard {
  watch(pid: number): void;
  /** Everything has ended in order: nothing is left for the guard to do. */
  dismiss(): Promise<void>;
}

export function startGuard(folder: string): Guard {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('../programs/guard.js', import.meta.url)), folder],
    // In a group of its own, which a kill of ours does not reach.
    { detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
  );
  const exited = once(child, 'exit');
  return {
    watch: (pid) => child.stdin.write(`${pid}\n`),
    async dismiss() {
      child.stdin.end('done\n');
      await exited;
    },
  };
}
