import type { Queue } from 'bullmq';
import { listWorkers } from '../worker-names.ts';
import { isForbidden } from './forbidden.ts';

/** A managed Redis may not have the command. */
const NO_CLIENT_COMMAND = /unknown command .client\b/i;

/** @param database the logical database of the queue: a server lists the clients of all of them */
export async function workerNames<Data>(queue: Queue<Data>, database: number): Promise<string[]> {
  try {
    const workers = await listWorkers(queue, Buffer.from(queue.name).toString('base64'));
    return workers.filter((worker) => worker.database === database).map(({ name }) => name);
  } catch (error) {
    if (isForbidden(error) || (error instanceof Error && NO_CLIENT_COMMAND.test(error.message))) return [];
    throw error;
  }
}
