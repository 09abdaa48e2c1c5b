import { batchedEvents } from '@runhook/contract';

const JOBS_PER_READ = 1_000;
const STATES = ['waiting', 'prioritized'] as const;

interface JobReader {
  getJobs(states: (typeof STATES)[number][], start: number, end: number): Promise<{ data: unknown }[]>;
}

/** Counts the events in the queue, of which a job may have several. */
export async function countQueuedEvents(queue: JobReader): Promise<number> {
  let events = 0;
  for (const state of STATES) {
    for (let start = 0, read = JOBS_PER_READ; read === JOBS_PER_READ; start += JOBS_PER_READ) {
      const jobs = await queue.getJobs([state], start, start + JOBS_PER_READ - 1);
      for (const { data } of jobs) events += batchedEvents(data)?.length ?? 1;
      read = jobs.length;
    }
  }
  return events;
}
