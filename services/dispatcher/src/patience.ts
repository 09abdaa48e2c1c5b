import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

/** The dispatcher is stopping: what was waiting for the database or the queue stays undone and comes back. */
export class StoppingError extends Error {
  readonly code = 'stopping';
}

/** Runs work that needs the database or the queue, and waits for as long as they are away. */
export type Patience = <T>(work: () => Promise<T>) => Promise<T>;

export interface PatienceOptions {
  isUnavailable: (error: unknown) => boolean;
  /** Ends every wait with a {@link StoppingError}. */
  signal: AbortSignal;
  /** Told when a wait begins, not at every try. */
  onWait: (error: unknown) => void;
}

export function createPatience({ isUnavailable, signal, onWait }: PatienceOptions): Patience {
  return async (work) => {
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
      try {
        return await work();
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        if (waitMs === FIRST_WAIT_MS) onWait(error);
        await sleep(waitMs, undefined, { signal }).catch(() => {
          throw new StoppingError('The dispatcher is stopping.', { cause: error });
        });
      }
    }
  };
}
