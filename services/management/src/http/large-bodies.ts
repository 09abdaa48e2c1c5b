import type { Response } from 'express';
import type { Bulkhead } from './bulkhead.ts';
import { MemoryRequiredError } from './errors.ts';

/** Size of the body of a request or a response that needs a slot, because its text and its JSON take several times as much. */
export const LARGE_BYTES = 2 * 1_024 * 1_024;
/** A caller that has not received its response after this time is disconnected, so that it does not occupy the slot forever. */
const SLOT_MAX_MS = 60_000;

/** Memory for a large body of a request or its response. */
export interface MemoryReservation {
  /**
   * Waits for a slot of the account, which is released when the connection has sent the response or is closed. Later
   * calls have no effect. The caller must occupy no other slot: clients that read slowly would make it wait.
   */
  reserve(): Promise<void>;
  /** Throws a MemoryRequiredError if no slot is reserved. */
  require(): void;
}

export function memoryReservation(
  slots: Pick<Bulkhead, 'run'>,
  response: Response,
  accountId: () => number | null,
): MemoryReservation {
  let reservation: Promise<void> | undefined;
  return {
    reserve() {
      reservation ??= new Promise((resolve, reject) => {
        const occupy = () => {
          resolve();
          return closed(response);
        };
        // Accounts have ids from 1, so the callers without an account share a slot.
        slots.run(accountId() ?? 0, occupy).catch(reject);
      });
      return reservation;
    },
    require() {
      if (reservation === undefined) throw new MemoryRequiredError();
    },
  };
}

/** Runs the work, and once more with memory if it turns out to require that. */
export async function runWithMemory<T>(memory: MemoryReservation, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MemoryRequiredError)) throw error;
    await memory.reserve();
    return await work();
  }
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
