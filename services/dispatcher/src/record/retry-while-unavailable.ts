import { setTimeout as sleep } from 'node:timers/promises';
import { connectionSentence, isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import { jittered, type Logger } from '@runhook/runtime';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

/** The dispatcher is stopping: work that waited for the database or the queue was not done, and its job will run again. */
export class StoppingError extends Error {
  readonly code = 'stopping';
  /** The job may run again immediately, in another process. */
  readonly delayMs = 0;
}

export interface Waiting {
  /** Ends every wait with a {@link StoppingError}. */
  stopping: AbortSignal;
  /** Logs the beginning of a wait, but not every retry. */
  logger: Pick<Logger, 'warn'>;
  /** Whether to retry a further error. */
  outlasts?: (error: unknown) => boolean;
}

/** Runs work that needs the database or the queue, and retries while they are unavailable. Other errors are thrown. */
export async function retryWhileUnavailable<Result>(
  { stopping, logger, outlasts = () => false }: Waiting,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    try {
      return await work();
    } catch (error) {
      const isAway = isDatabaseUnavailable(error) || error instanceof QueueUnavailableError;
      if (!isAway && !outlasts(error)) throw error;
      if (waitMs === FIRST_WAIT_MS) logger.warn(reasonOf(error), 'waiting for the database or the queue');
      await sleep(jittered(waitMs), undefined, { signal: stopping }).catch(() => {
        throw new StoppingError('The dispatcher is stopping.', { cause: error });
      });
    }
  }
}

/** Returns a sentence for operators if the error is a known problem of the connection, otherwise the error. */
function reasonOf(error: unknown): { reason: string } | { err: unknown } {
  const reason = connectionSentence(error);
  return reason === null ? { err: error } : { reason };
}
