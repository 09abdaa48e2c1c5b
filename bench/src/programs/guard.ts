// node guard.js <folder>: reads pids, one per line. If its input ends without "done", the benchmark was killed: the
// guard ends those processes and removes the folder.
import { readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';

const folder = process.argv[2] as string;
const started = new Map<number, string>();
let isDone = false;

/** Returns the start time of a process, which distinguishes processes that had the same pid. */
function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'done') isDone = true;
    else started.set(Number(line), startTimeOf(Number(line)));
  })
  .on('close', () => {
    if (isDone) return;
    for (const [pid, startTime] of started) {
      if (startTime === '' || startTimeOf(pid) !== startTime) continue;
      try {
        // SIGQUIT is PostgreSQL's immediate shutdown, and ends the other processes as well.
        process.kill(pid, 'SIGQUIT');
      } catch {
        // The process has ended in the meantime.
      }
    }
    setTimeout(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }), 2_000);
  });
