/** Marks work that did not end in time; the work itself goes on, nothing can stop a promise. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly code = 'ERR_DEADLINE';
}

/**
 * Waits for the work, but no longer than `timeoutMs`.
 * @throws DeadlineError when the time is over, or whatever the work throws before.
 */
export async function withinDeadline(
  timeoutMs: number,
  work: () => Promise<unknown> | unknown,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new DeadlineError(`did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([(async () => work())(), expiry]);
  } finally {
    clearTimeout(timer);
  }
}
