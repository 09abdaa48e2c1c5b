import { availableParallelism } from 'node:os';
import { availableMemory } from 'node:process';

/** Memory that a worker of jest needs, including the services and the browser that its test starts. */
const WORKER_BYTES = 1.5 * 2 ** 30;
/** The servers of the tests are shared: PostgreSQL accepts 300 connections, and a test with both services uses up to 30. */
const WORKERS_MAX = 8;

/**
 * Returns the number of jest's workers: 1.5 per core, because many tests wait for a response, a retry or a browser, and no more
 * than fit into memory.
 *
 * @param {{ cores?: number, memoryBytes?: number }} [machine] this one when omitted
 */
export function workerCount({ cores = availableParallelism(), memoryBytes = availableMemory() } = {}) {
  const fitting = Math.min(Math.ceil(cores * 1.5), Math.floor(memoryBytes / WORKER_BYTES), WORKERS_MAX);
  return Math.max(1, fitting);
}
