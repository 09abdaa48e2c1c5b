import { setTimeout as wait } from 'node:timers/promises';
import type { Lifecycle } from '@runhook/runtime';
import type { Running } from './child.ts';
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

/** A thing that is started again whenever it dies. */
export interface Supervised<R extends Running> {
  /** The one that runs, or the last one that did. */
  readonly current: R;
  /** Stops it, so that it is started again: with another environment, perhaps. Resolves when it is up. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  kill(): void;
}

export interface SuperviseOptions<R extends Running> {
  /**
   * Resolves when it is ready to work. Must leave nothing behind when it rejects. `previous` is the one that ended,
   * whose port the next one had best have.
   */
  start(signal: AbortSignal, previous: R | null): Promise<R>;
  onDeath(running: R, how: string): void;
  /** Is awaited after each start but the first. */
  onStartedAgain(running: R): Promise<void> | void;
  onFailedStart(error: Error): void;
}

/** The wait before each start in a row that failed; the last one goes on. One that held for a while begins anew. */
const WAITS_MS = [0, 500, 1_000, 2_000, 5_000, 10_000];
const HELD_MS = 30_000;

/** Starts it, and from then on starts it again when it dies. What goes wrong at the first start is thrown. */
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
      // Not awaited: it may have to restart others, or even this one.
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

/** What `scripts/start/terminal.mjs` makes. */
export interface Stopping {
  /** Aborted by the first Ctrl-C. */
  signal: AbortSignal;
  /** Runs on the second one, just before the process ends; what was given last comes first. */
  onSecond(kill: () => void): void;
}
