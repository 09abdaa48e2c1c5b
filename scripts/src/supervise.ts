import { setTimeout as wait } from 'node:timers/promises';
import type { Lifecycle } from '@runhook/runtime';
import type { Running } from './child.ts';
import type { Terminal } from './terminal.ts';

/** Describes a process that is restarted when it dies and stopped with all others. */
export interface KeptRunning<R extends Running> {
  name: string;
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  /** Returns the last lines of its output, for people. */
  lastLines(running: R): string[];
  onStartedAgain(): Promise<void>;
  stopTimeoutMs: number;
}

export interface KeepRunningSurroundings {
  terminal: Terminal;
  lifecycle: Lifecycle;
  stopping: Stopping;
}

/** Starts the process, reports its restarts on the terminal, and registers its closer. */
export async function keepRunning<R extends Running>(
  { terminal, lifecycle, stopping }: KeepRunningSurroundings,
  { name, start, lastLines, onStartedAgain, stopTimeoutMs }: KeptRunning<R>,
): Promise<Supervised<R>> {
  const supervised = await supervise<R>({
    start: (signal, previous) => start(AbortSignal.any([signal, stopping.signal]), previous),
    onDeath(running, how) {
      terminal.note(`${name} (pid ${running.pid}) ${how}: restarting it`);
      for (const line of lastLines(running)) terminal.line(`    ${terminal.style.dim(line)}`);
    },
    async onStartedAgain(running) {
      terminal.note(`${name} is up again (pid ${running.pid})`);
      await onStartedAgain();
    },
    onFailedStart: (error) => terminal.note(`${name} could not be restarted: ${error.message}`),
  });
  lifecycle.onClose(name, () => supervised.stop(), { timeoutMs: stopTimeoutMs });
  stopping.onSecond(() => supervised.kill());
  return supervised;
}

/** Is a process that is restarted whenever it dies. */
export interface Supervised<R extends Running> {
  /** The running process, or the last one. */
  readonly current: R;
  /** Restarts the process, for example with another environment. Resolves when it is ready. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  kill(): void;
}

export interface SuperviseOptions<R extends Running> {
  /**
   * Resolves when the process is ready. Must leave nothing behind when it rejects. `previous` is the process that ended; the new
   * one should use the same port.
   */
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  onDeath(running: R, how: string): void;
  /** Is awaited after each restart. */
  onStartedAgain(running: R): Promise<void> | void;
  onFailedStart(error: Error): void;
}

/** Lists the wait before each consecutive failed start; the last one repeats. A process that ran for HELD_MS resets the count. */
const WAITS_MS = [0, 500, 1_000, 2_000, 5_000, 10_000];
const HELD_MS = 30_000;

/** Starts a process, and restarts it whenever it dies. Rejects if the first start fails. */
export async function supervise<R extends Running>(options: SuperviseOptions<R>): Promise<Supervised<R>> {
  const stopping = new AbortController();
  let current = await options.start(stopping.signal, null);
  let isRestarting = false;
  let failures = 0;
  let next = deferred<void>();

  async function startAgain(): Promise<R | null> {
    while (!stopping.signal.aborted) {
      const waitMs = WAITS_MS[Math.min(failures, WAITS_MS.length - 1)];
      failures += 1;
      await wait(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) break;
      try {
        const started = await options.start(stopping.signal, current);
        if (!stopping.signal.aborted) return started;
        await started.stop();
      } catch (error) {
        if (!stopping.signal.aborted) options.onFailedStart(error as Error);
      }
    }
    return null;
  }

  async function watch(): Promise<void> {
    while (true) {
      const startedAt = performance.now();
      const how = await current.exited;
      if (stopping.signal.aborted) return;
      if (isRestarting || performance.now() - startedAt > HELD_MS) failures = 0;
      if (!isRestarting) options.onDeath(current, how);
      isRestarting = false;
      const started = await startAgain();
      if (started === null) return;
      current = started;
      next.resolve();
      next = deferred();
      // Not awaited, because the callback may restart other processes, or this one.
      void (async () => options.onStartedAgain(started))().catch(options.onFailedStart);
    }
  }
  const watching = watch();

  return {
    get current() {
      return current;
    },
    async restart() {
      if (stopping.signal.aborted) return;
      isRestarting = true;
      const up = next.promise;
      await current.stop();
      await Promise.race([up, watching]);
    },
    async stop() {
      stopping.abort();
      await current.stop();
      await watching;
    },
    kill() {
      stopping.abort();
      current.kill();
    },
  };
}

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Is created by `scripts/start/terminal.mjs`. */
export interface Stopping {
  /** Is aborted by the first Ctrl-C. */
  signal: AbortSignal;
  /** Registers a function for the second Ctrl-C, which runs just before the process exits. The last registered runs first. */
  onSecond(kill: () => void): void;
}
