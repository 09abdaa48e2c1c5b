import { setTimeout as sleep } from 'node:timers/promises';
import { describeConnectionProblem, isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import { type Logger, withJitter } from '@runhook/runtime';

const WAIT_MIN_MS = 250;
const WAIT_MAX_MS = 5_000;

/** The dispatcher is stopping: work that waited or had not begun its requests was not done, and its job will run again. */
export class StoppingError extends Error {
  readonly code = 'stopping';
  /** The job may run again immediately, in another process. */
  readonly delayMs = 0;
}

/** Throws during a stop, to leave the job to another dispatcher: a request that begins late would be interrupted. */
export function throwIfStopping(stopping: AbortSignal): void {
  if (stopping.aborted) throw new StoppingError('The dispatcher is stopping.');
}

export interface RetryOptions {
  /** Ends every wait with a {@link StoppingError}. */
  stopping: AbortSignal;
  /** Logs the beginning of a wait, but not every retry. */
  logger: Pick<Logger, 'warn'>;
  /** Whether to retry an error other than an unavailable server. */
  isRetryable?: (error: unknown) => boolean;
}

/** Runs work that needs the database or the queue, and retries while they are unavailable. Other errors are thrown. */
export async function retryWhileUnavailable<Result>(
  { stopping, logger, isRetryable = () => false }: RetryOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let waitMs = WAIT_MIN_MS; ; waitMs = Math.min(waitMs * 2, WAIT_MAX_MS)) {
    try {
      return await work();
    } catch (error) {
      const isUnavailable = isDatabaseUnavailable(error) || error instanceof QueueUnavailableError;
      if (!isUnavailable && !isRetryable(error)) throw error;
      if (waitMs === WAIT_MIN_MS) logger.warn(toLogFields(error), 'waiting for the database or the queue');
      await sleep(withJitter(waitMs), undefined, { signal: stopping }).catch(() => {
        throw new StoppingError('The dispatcher is stopping.', { cause: error });
      });
    }
  }
}

/** Returns a sentence for operators if the error is a known problem of the connection, otherwise the error. */
function toLogFields(error: unknown): { reason: string } | { err: unknown } {
  const reason = describeConnectionProblem(error);
  return reason === null ? { err: error } : { reason };
}
