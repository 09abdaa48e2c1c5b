import { setTimeout as wait } from 'node:timers/promises';
import { createPostgresBackend } from 'bullmq';

/** What is BullMQ's own: the connection of a backend, and how it makes itself ready. */
interface Connection {
  bootstrap(): Promise<void>;
  waitUntilReady(): Promise<void>;
}

const RETRY_MS = 500;

/**
 * As BullMQ's own, but a connection that could not be made ready tries again. BullMQ remembers the first try for ever,
 * and the loop of a worker asks for it without a pause: with a failed one it would never work again, and never let
 * anything else of its process run.
 */
export const createPatientBackend: typeof createPostgresBackend = (name, options, factoryOptions) => {
  const backend = createPostgresBackend(name, options, factoryOptions);
  const { connection } = backend as unknown as { connection: Connection };
  let readiness: Promise<void> | null = null;
  connection.waitUntilReady = () => {
    readiness ??= connection.bootstrap().catch(async (error: unknown) => {
      await wait(RETRY_MS);
      readiness = null;
      throw error;
    });
    return readiness;
  };
  return backend;
};
