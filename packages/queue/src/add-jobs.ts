import type { Queue } from 'bullmq';
import type { QueueBackend } from './queue-backend.ts';

export type NewJob<Data> = Parameters<Queue<Data>['addBulk']>[0][number];

/**
 * Up to so many jobs are added one by one on PostgreSQL: BullMQ's bulk function makes two temporary tables, which costs
 * the server 5 ms of CPU for each call, and a single job a tenth of that (ADR 31).
 */
const SINGLY_MAX = 8;

/**
 * Adds jobs in order; one whose id is queued already adds nothing. When it throws, some may have been added: whoever
 * tries again brings the same ids.
 */
export async function addJobs<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: NewJob<Data>[],
): Promise<void> {
  // Each added by itself would be a span of its own, under the active trace instead of the job's.
  const isTraced = queue.opts.telemetry !== undefined;
  if (backend.name !== 'PostgreSQL' || jobs.length > SINGLY_MAX || isTraced) {
    await queue.addBulk(jobs);
    return;
  }
  for (const { name, data, opts } of jobs) await queue.add(name, data, opts);
}
