import { setTimeout as sleep } from 'node:timers/promises';
import { connectionSentence, isDatabaseUnavailable } from '@runhook/database';
import { QueueUnavailableError } from '@runhook/queue';
import { jittered, type Logger } from '@runhook/runtime';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

/** The dispatcher is stopping: work that waited for the database or the queue is not done, and its job is run again. */
export class StoppingError extends Error {
  readonly code = 'stopping';
  /** Its job may come again at once, elsewhere. */
  readonly delayMs = 0;
}

export interface Waiting {
  /** Ends every wait with a {@link StoppingError}. */
  stopping: AbortSignal;
  /** Hears of it when a wait begins, not at every try. */
  logger: Pick<Logger, 'warn'>;
  /** Further errors that are waited out. */
  outlasts?: (error: unknown) => boolean;
}

/** Does work that needs the database or the queue, and waits for as long as they are away. Other errors pass. */
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

/** A sentence for what an operator can tell from it; else the error. */
function reasonOf(error: unknown): { reason: string } | { err: unknown } {
  const reason = connectionSentence(error);
  return reason === null ? { err: error } : { reason };
}
