// node guard.js <folder>: reads pids, one per line. When its input ends without "done", whoever started it was killed:
// ends those processes and removes the folder.
import { readFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';

const folder = process.argv[2] as string;
const started = new Map<number, string>();
let isDone = false;

/** When the process began: a pid that is used again is another process. */
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
        // PostgreSQL's immediate shutdown; it ends the others too.
        process.kill(pid, 'SIGQUIT');
      } catch {
        // It has just ended.
      }
    }
    setTimeout(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }), 2_000);
  });
