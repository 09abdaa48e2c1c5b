import { setTimeout as wait } from 'node:timers/promises';
import type { Lifecycle } from '@runhook/runtime';
import type { RunningProcess } from './child.ts';
import type { Terminal } from './terminal.ts';

/** Describes how to start a process that is restarted when it dies and stopped with all others. */
export interface SupervisedOptions<R extends RunningProcess> {
  name: string;
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  /** Returns the last lines of its output, for people. */
  lastLines(running: R): string[];
  onRestart(): Promise<void>;
  stopTimeoutMs: number;
}

export interface SupervisionContext {
  terminal: Terminal;
  lifecycle: Lifecycle;
  stopping: Stopping;
}

/** Starts the process, reports its restarts on the terminal, and registers its closer. */
export async function superviseProcess<R extends RunningProcess>(
  { terminal, lifecycle, stopping }: SupervisionContext,
  { name, start, lastLines, onRestart, stopTimeoutMs }: SupervisedOptions<R>,
): Promise<Supervised<R>> {
  const supervised = await supervise<R>({
    start: (signal, previous) => start(AbortSignal.any([signal, stopping.signal]), previous),
    onExit(running, description) {
      terminal.note(`${name} (pid ${running.pid}) ${description}: restarting it`);
      for (const line of lastLines(running)) terminal.line(`    ${terminal.style.dim(line)}`);
    },
    async onRestart(running) {
      terminal.note(`${name} restarted (pid ${running.pid})`);
      await onRestart();
    },
    onStartFailure: (error) => terminal.note(`${name} could not be restarted: ${error.message}`),
  });
  lifecycle.onClose(name, () => supervised.stop(), { timeoutMs: stopTimeoutMs });
  stopping.onSecondSignal(() => supervised.kill());
  return supervised;
}

/** A process that is restarted whenever it dies. */
export interface Supervised<R extends RunningProcess> {
  /** The running process, or the last one. */
  readonly current: R;
  /** Restarts the process, for example with another environment. Resolves when it is ready. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  kill(): void;
}

export interface SuperviseOptions<R extends RunningProcess> {
  /**
   * Resolves when the process is ready. Must leave nothing behind when it rejects. `previous` is the process that ended; the new
   * one should use the same port.
   */
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  onExit(running: R, description: string): void;
  /** Awaited after each restart. */
  onRestart(running: R): Promise<void> | void;
  onStartFailure(error: Error): void;
}

/** The waits before consecutive restarts of a process; the last one repeats. A process that ran for STABLE_MS resets the count. */
const RESTART_WAITS_MS = [0, 500, 1_000, 2_000, 5_000, 10_000];
const STABLE_MS = 30_000;

/** Starts a process, and restarts it whenever it dies. Rejects if the first start fails. */
export async function supervise<R extends RunningProcess>(
  options: SuperviseOptions<R>,
): Promise<Supervised<R>> {
  const stopping = new AbortController();
  let current = await options.start(stopping.signal, null);
  let isRestarting = false;
  let failures = 0;
  let nextStart = deferred<void>();

  async function restartWithBackoff(): Promise<R | null> {
    while (!stopping.signal.aborted) {
      const waitMs = RESTART_WAITS_MS[Math.min(failures, RESTART_WAITS_MS.length - 1)];
      failures += 1;
      await wait(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) break;
      try {
        const started = await options.start(stopping.signal, current);
        if (!stopping.signal.aborted) return started;
        await started.stop();
      } catch (error) {
        if (!stopping.signal.aborted) options.onStartFailure(error as Error);
      }
    }
    return null;
  }

  async function watch(): Promise<void> {
    while (true) {
      const startedAt = performance.now();
      const description = await current.exited;
      if (stopping.signal.aborted) return;
      if (isRestarting || performance.now() - startedAt > STABLE_MS) failures = 0;
      if (!isRestarting) options.onExit(current, description);
      isRestarting = false;
      const started = await restartWithBackoff();
      if (started === null) return;
      current = started;
      nextStart.resolve();
      nextStart = deferred();
      // Not awaited, because the callback may restart other processes, or this one.
      void (async () => options.onRestart(started))().catch(options.onStartFailure);
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
      const restarted = nextStart.promise;
      await current.stop();
      await Promise.race([restarted, watching]);
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

/** Created by `scripts/start/terminal.mjs`. */
export interface Stopping {
  /** Aborted by the first Ctrl-C. */
  signal: AbortSignal;
  /** Registers a function for the second Ctrl-C, which runs just before the process exits. The last registered runs first. */
  onSecondSignal(kill: () => void): void;
}
