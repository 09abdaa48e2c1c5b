import type { Logger } from 'pino';
import { withinDeadline } from './timers.ts';

export interface LifecycleOptions {
  logger: Pick<Logger, 'info' | 'error' | 'fatal'>;
  /** Default time limit of a closer; 10,000 if omitted. */
  closeTimeoutMs?: number;
}

interface Closer {
  name: string;
  close: () => Promise<void> | void;
  timeoutMs: number;
}

/**
 * Controls the orderly stop of a process. Each resource registers its closer right after it is opened. close() sets
 * `stopping` (readiness turns red), then runs the closers in reverse order, one at a time.
 *
 * running ── close(reason) ──▶ stopping ── every closer ended or timed out ──▶ closed
 */
export class Lifecycle {
  readonly #logger: LifecycleOptions['logger'];
  readonly #closeTimeoutMs: number;
  readonly #closers: Closer[] = [];
  readonly #end = createDeferred();
  /** Name of the running closer, which is logged if the stop takes too long. */
  #closing: string | null = null;
  #stopping = false;
  #closed = false;

  constructor({ logger, closeTimeoutMs = 10_000 }: LifecycleOptions) {
    this.#logger = logger;
    this.#closeTimeoutMs = closeTimeoutMs;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /**
   * Registers the closer of a resource that was just opened. A resource that is opened during or after the stop is
   * closed as well.
   */
  onClose(name: string, close: () => Promise<void> | void, { timeoutMs }: { timeoutMs?: number } = {}): void {
    this.#closers.push({ name, close, timeoutMs: timeoutMs ?? this.#closeTimeoutMs });
    if (this.#closed) void this.#runClosers();
  }

  /**
   * Runs all closers once, however often it is called. Never rejects: a failing closer is logged and the next one runs.
   */
  close(reason: string): Promise<void> {
    if (!this.#stopping) {
      this.#stopping = true;
      this.#logger.info({ reason }, 'stopping');
      void this.#closeAll();
    }
    return this.#end.promise;
  }

  /**
   * Closes on SIGTERM, SIGINT or an unhandled error, waits until everything is closed, whatever initiated it, and
   * resolves with the exit code: 0, or 1 if an unhandled error occurred. A second signal exits the process immediately
   * with 1, and so does the end of `budgetMs`, counted from the first signal or error; unfinished work is then
   * recovered as after a kill. The caller should pass the code to `process.exit`, because a closer that timed out may
   * have left something that keeps the process alive.
   */
  async runUntilSignal({ budgetMs }: { budgetMs?: number } = {}): Promise<number> {
    let exitCode = 0;
    let signalled = false;
    let budget: NodeJS.Timeout | undefined;
    const end = (reason: string) => {
      if (budgetMs !== undefined) budget ??= setTimeout(() => this.#giveUp(budgetMs), budgetMs);
      void this.close(reason);
    };

    const onSignal = (signal: NodeJS.Signals) => {
      if (signalled) {
        this.#logger.error({ signal }, 'second signal, exiting at once');
        process.exit(1);
      }
      signalled = true;
      end(signal);
    };
    const onFault = (err: unknown, origin: string) => {
      exitCode = 1;
      this.#logger.fatal({ err, origin }, 'unhandled error');
      end(origin);
    };
    const onException = (error: Error) => onFault(error, 'uncaughtException');
    const onRejection = (reason: unknown) => onFault(reason, 'unhandledRejection');

    process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
    process.on('uncaughtException', onException).on('unhandledRejection', onRejection);
    try {
      await this.#end.promise;
      return exitCode;
    } finally {
      clearTimeout(budget);
      process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
      process.off('uncaughtException', onException).off('unhandledRejection', onRejection);
    }
  }

  #giveUp(budgetMs: number): void {
    this.#logger.error({ budgetMs, closer: this.#closing }, 'the stop took too long, exiting at once');
    process.exit(1);
  }

  async #closeAll(): Promise<void> {
    await this.#runClosers();
    this.#closed = true;
    this.#logger.info('closed');
    this.#end.resolve();
  }

  async #runClosers(): Promise<void> {
    for (let closer = this.#closers.pop(); closer !== undefined; closer = this.#closers.pop()) {
      await this.#run(closer);
    }
  }

  async #run({ name, close, timeoutMs }: Closer): Promise<void> {
    this.#closing = name;
    try {
      await withinDeadline(timeoutMs, close);
    } catch (err) {
      this.#logger.error({ err, closer: name }, 'could not close');
    }
  }
}

function createDeferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
