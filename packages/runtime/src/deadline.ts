import { setTimeout as wait } from 'node:timers/promises';

/** Marks work that did not end in time; the work itself goes on, nothing can stop a promise. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly code = 'ERR_DEADLINE';
}

/**
 * Waits for the work, but no longer than `timeoutMs`. A failure of work that is late is dropped.
 * @throws DeadlineError when the time is over, or whatever the work throws before.
 */
export async function withinDeadline<T>(timeoutMs: number, work: () => Promise<T> | T): Promise<T> {
  const ended = new AbortController();
  const expiry = wait(timeoutMs, undefined, { signal: ended.signal }).then(() => {
    throw new DeadlineError(`did not end within ${timeoutMs} ms`);
  });
  try {
    return await Promise.race([(async () => work())(), expiry]);
  } finally {
    ended.abort();
  }
}
