/** The queue did not take a call; nothing was added that the caller may rely on. `cause` holds the driver's error. */
export class QueueUnavailableError extends Error {
  readonly code = 'queue_unavailable';
}

const CALL_TIMEOUT_MS = 5_000;

/** Bounds a producer's call: a driver that keeps waiting for its backend must not keep a request waiting. */
export async function withinCallTimeout<T>(call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new QueueUnavailableError(`The queue did not answer within ${CALL_TIMEOUT_MS} ms.`)),
      CALL_TIMEOUT_MS,
    );
  });
  try {
    return await Promise.race([call, timeout]);
  } catch (error) {
    throw error instanceof QueueUnavailableError
      ? error
      : new QueueUnavailableError('The queue did not take the call.', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
