import { setTimeout as wait } from 'node:timers/promises';
import { withJitter } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';

/** Longest pause after a worker got an error instead of a job; the shortest is half of it. */
const PAUSE_MS = 1_000;

/**
 * Returns the same worker with a pause after an error. After an error other than a lost connection, BullMQ's worker
 * requests its next job at once: it would query a full server, and report its error, a thousand times a second.
 */
export function withErrorBackoff<Data>(worker: Worker<Data>): Worker<Data> {
  const backend = worker.getBackend();
  const moveToActive = backend.moveToActive.bind(backend);
  backend.moveToActive = async (...parameters) => {
    try {
      return await moveToActive(...parameters);
    } catch (error) {
      await wait(withJitter(PAUSE_MS));
      throw error;
    }
  };
  return worker;
}
