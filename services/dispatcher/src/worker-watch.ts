import type { JobInLine } from '@runhook/queue';

/** What a worker has in hand, counted by its processor. */
export interface Hand {
  jobs: number;
  /** Jobs that were ever begun. */
  begun: number;
}

/** The worker does not work: its loop has ended, or it takes no job although one waits. */
export class WorkerStoppedError extends Error {
  readonly code: 'WORKER_STOPPED' | 'WORKER_STUCK';

  constructor(code: 'WORKER_STOPPED' | 'WORKER_STUCK', message: string) {
    super(message);
    this.code = code;
  }
}

/** Tells whether a worker is alive, for the health checks. */
export interface WorkerWatch {
  /** Takes a look at the queue, if the worker gives cause to; throws when the queue does not answer. */
  look(): Promise<void>;
  /** @throws WorkerStoppedError */
  check(): void;
}

export interface WorkerWatchOptions {
  worker: { readonly name: string; isRunning(): boolean };
  hand: Hand;
  /** Jobs that the worker may have in hand. */
  concurrency: number;
  firstInLine: () => Promise<Pick<JobInLine, 'id' | 'isPaused'> | null>;
  /** How long the same job may be first in line while the worker has room and begins nothing; default 6,000. */
  patienceMs?: number;
  nowMs?: () => number;
}

/**
 * A worker whose loop has ended says so itself. One whose connection is dead, or whose loop hangs, still calls itself
 * running: it is known by a job that stays first in line while it has room. Other dispatchers take jobs from the same
 * line, so a healthy one that has nothing to do never sees the same job there for long; and while the queue does not
 * answer nothing is held against the worker, which has to wait for it as everybody else.
 */
export function createWorkerWatch({
  worker,
  hand,
  concurrency,
  firstInLine,
  patienceMs = 6_000,
  nowMs = Date.now,
}: WorkerWatchOptions): WorkerWatch {
  let begunAtLook = -1;
  let waiting: { jobId: string; sinceMs: number } | null = null;

  return {
    async look() {
      const isIdle = hand.jobs < concurrency && hand.begun === begunAtLook;
      begunAtLook = hand.begun;
      if (!isIdle) {
        waiting = null;
        return;
      }
      const first = await firstInLine().catch((error: unknown) => {
        waiting = null;
        throw error;
      });
      if (first === null || first.isPaused || hand.begun !== begunAtLook) waiting = null;
      else if (waiting?.jobId !== first.id) waiting = { jobId: first.id, sinceMs: nowMs() };
    },
    check() {
      const { name } = worker;
      if (!worker.isRunning()) throw new WorkerStoppedError('WORKER_STOPPED', `${name} is not running`);
      if (waiting !== null && hand.begun === begunAtLook && nowMs() - waiting.sinceMs >= patienceMs) {
        throw new WorkerStoppedError('WORKER_STUCK', `${name} does not take ${waiting.jobId}, which waits`);
      }
    },
  };
}
