import type { Response } from 'express';
import type { Bulkhead } from './bulkhead.ts';

/** Size of the body of a request or a response that needs a slot, because its text and its JSON take several times as much. */
export const LARGE_BYTES = 2 * 1_024 * 1_024;
/** A caller that has not received its response after this time is disconnected, so that it does not occupy the slot forever. */
const SLOT_MAX_MS = 60_000;

/**
 * Returns a function that reserves memory for a large body of the request or its response: it waits for a slot of the
 * account, which is released when the connection has sent the response or is closed. Later calls have no effect.
 */
export function memoryReservation(
  slots: Pick<Bulkhead, 'run'>,
  response: Response,
  accountId: () => number | null,
): () => Promise<void> {
  let reservation: Promise<void> | undefined;
  return () => {
    reservation ??= new Promise((resolve, reject) => {
      const occupy = () => {
        resolve();
        return closed(response);
      };
      // Accounts have ids from 1, so the callers without an account share a slot.
      slots.run(accountId() ?? 0, occupy).catch(reject);
    });
    return reservation;
  };
}

function closed(response: Response): Promise<void> {
  if (response.destroyed || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => response.destroy(), SLOT_MAX_MS);
    response.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
