import { setTimeout as wait } from 'node:timers/promises';
import { jittered } from '@runhook/runtime/timers';
import type { Worker } from 'bullmq';

/** Between two tries of a worker that got an error instead of a job. */
const PAUSE_MS = 1_000;

/**
 * Returns the same worker, with a pause after an error. BullMQ's worker asks for its next job without a pause after an error
 * that is no lost connection: a server that is full would be asked, and its error reported, a thousand times a second.
 */
export function withErrorPause<Data>(worker: Worker<Data>): Worker<Data> {
  const backend = worker.getBackend();
  const moveToActive = backend.moveToActive.bind(backend);
  backend.moveToActive = async (...parameters) => {
    try {
      return await moveToActive(...parameters);
    } catch (error) {
      await wait(jittered(PAUSE_MS));
      throw error;
    }
  };
  return worker;
}
