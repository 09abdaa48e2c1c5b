import type { Lifecycle } from '@runhook/runtime';
import type { Running } from './child.ts';
import type { Stopping } from './stopping.ts';
import { type Supervised, supervise } from './supervise.ts';
import type { Terminal } from './terminal.ts';

/** Something that starts, is started again when it dies, and is stopped with everything else. */
export interface KeptRunning<R extends Running> {
  name: string;
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  /** What it wrote last, for people. */
  lastLines(running: R): string[];
  onStartedAgain(): Promise<void>;
  stopTimeoutMs: number;
}

export interface KeepRunningSurroundings {
  terminal: Terminal;
  lifecycle: Lifecycle;
  stopping: Stopping;
}

/** Starts it, says on the terminal what becomes of it, and registers its end. */
export async function keepRunning<R extends Running>(
  { terminal, lifecycle, stopping }: KeepRunningSurroundings,
  { name, start, lastLines, onStartedAgain, stopTimeoutMs }: KeptRunning<R>,
): Promise<Supervised<R>> {
  const supervised = await supervise<R>({
    start: (signal, previous) => start(AbortSignal.any([signal, stopping.signal]), previous),
    onDeath(running, how) {
      terminal.note(`${name} (pid ${running.pid}) ${how}: starting it again`);
      for (const line of lastLines(running)) terminal.line(`    ${terminal.style.dim(line)}`);
    },
    async onStartedAgain(running) {
      terminal.note(`${name} is up again (pid ${running.pid})`);
      await onStartedAgain();
    },
    onFailedStart: (error) => terminal.note(`${name} did not come up again: ${error.message}`),
  });
  lifecycle.onClose(name, () => supervised.stop(), { timeoutMs: stopTimeoutMs });
  stopping.onSecond(() => supervised.kill());
  return supervised;
}
