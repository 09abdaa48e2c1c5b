import type { Queue } from 'bullmq';

/** Which of the job ids the queue holds, waiting, delayed, active or finished and kept. */
export async function heldBy<Data>(queue: Queue<Data>, jobIds: readonly string[]): Promise<Set<string>> {
  const jobs = await Promise.all(jobIds.map((jobId) => queue.getJob(jobId)));
  return new Set(jobs.flatMap((job) => (job?.id === undefined ? [] : [job.id])));
}
