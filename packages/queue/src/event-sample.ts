import { batchedEvents, type EventKey, eventJobId } from '@runhook/contract';
import type { Job, Queue } from 'bullmq';

/** Events of a part of the queue, read from its jobs, each of which may have up to twenty. */
export interface EventSample {
  /** The {@link eventJobId} of each event, and the id of each job. */
  ids: Set<string>;
  /**
   * Every queued event whose job was added in this interval is in `ids`. Milliseconds since the epoch; unbounded where
   * the end of the list was read; empty (`sinceMs` is Infinity) if too many jobs are delayed to be read.
   */
  sinceMs: number;
  untilMs: number;
  /** Number of jobs that were read. */
  jobs: number;
}

/** Jobs of a list that one read returns: up to 14 MB, since a job has up to 524 KB of text, and a batch 32 KB more. */
const PAGE_SIZE = 25;
/** Number of jobs to read at each end of a list, where jobs are that a worker returned to the queue, whatever their age. */
const END_SIZE = 100;
const LISTS = ['waiting', 'prioritized'] as const;
const COUNT_KEYS = { waiting: 'wait', prioritized: 'prioritized' } as const;

/**
 * Reads at most `jobsMax` jobs of each list in pages, the jobs at the ends of the lists, and the delayed and active
 * jobs. Each list is read from its newest job to its oldest: jobs that are added meanwhile are read twice, and none is
 * skipped. Active jobs are read last, since other jobs become active meanwhile.
 * @param fraction position of the part in a list, from 0 (its newest jobs) to 1 (its oldest)
 */
export async function sampleEvents<Data>(
  queue: Queue<Data>,
  { fraction, jobsMax }: { fraction: number; jobsMax: number },
): Promise<EventSample> {
  const sample = emptySample();
  const counts = await queue.getJobCounts();
  for (const list of LISTS) {
    const count = counts[list] ?? counts[COUNT_KEYS[list]] ?? 0;
    if (count > 0) await sampleList(queue, sample, { list, count, fraction, jobsMax });
  }
  if ((counts.delayed ?? 0) > jobsMax) sample.sinceMs = Number.POSITIVE_INFINITY;
  else await notePages(queue, sample, ['delayed'], counts.delayed ?? 0);
  await notePages(queue, sample, LISTS, END_SIZE);
  // Read in one call, because a job that leaves this end would move another one to a page that was read before.
  note(sample, await queue.getJobs([...LISTS], 0, END_SIZE - 1, true));
  note(sample, await queue.getJobs(['active']));
  return sample;
}

/**
 * Returns the events of the jobs that are delayed, or were added last, by {@link eventJobId}: a delayed job that becomes
 * due is behind all others. Null if more jobs than `jobsMax` are delayed.
 */
export async function retriedEvents<Data>(queue: Queue<Data>, jobsMax: number): Promise<Set<string> | null> {
  const count = await queue.getDelayedCount();
  if (count > jobsMax) return null;
  const sample = emptySample();
  await notePages(queue, sample, ['delayed'], count);
  await notePages(queue, sample, LISTS, END_SIZE);
  return sample.ids;
}

function emptySample(): EventSample {
  return {
    ids: new Set(),
    sinceMs: Number.NEGATIVE_INFINITY,
    untilMs: Number.POSITIVE_INFINITY,
    jobs: 0,
  };
}

/** Reads at most `jobsMax` jobs of each state, from the newest or the last due one on. */
async function notePages<Data>(
  queue: Queue<Data>,
  sample: EventSample,
  states: readonly ((typeof LISTS)[number] | 'delayed')[],
  jobsMax: number,
): Promise<void> {
  for (let start = 0; start < jobsMax; start += PAGE_SIZE) {
    const jobs = await queue.getJobs([...states], start, Math.min(start + PAGE_SIZE, jobsMax) - 1);
    note(sample, jobs);
  }
}

interface ListPart {
  list: (typeof LISTS)[number];
  count: number;
  fraction: number;
  jobsMax: number;
}

async function sampleList<Data>(
  queue: Queue<Data>,
  sample: EventSample,
  { list, count, fraction, jobsMax }: ListPart,
): Promise<void> {
  const start = Math.floor(fraction * Math.max(0, count - jobsMax));
  let oldestMs = Number.POSITIVE_INFINITY;
  let newestMs = Number.NEGATIVE_INFINITY;
  const read = Math.min(jobsMax, count - start);
  // A page has fewer jobs if some ended or lost their key meanwhile, so a short page is not the end of the list.
  for (let offset = 0; offset < read; offset += PAGE_SIZE) {
    const end = Math.min(offset + PAGE_SIZE, read);
    const jobs = await queue.getJobs([list], start + offset, start + end - 1);
    note(sample, jobs);
    for (const { timestamp } of jobs) {
      oldestMs = Math.min(oldestMs, timestamp);
      newestMs = Math.max(newestMs, timestamp);
    }
  }
  if (start > 0) sample.untilMs = Math.min(sample.untilMs, newestMs);
  if (start + jobsMax < count) sample.sinceMs = Math.max(sample.sinceMs, oldestMs);
}

function note<Data>(sample: EventSample, jobs: readonly (Job<Data> | undefined)[]): void {
  // A job that ended meanwhile is absent.
  for (const job of jobs) {
    if (job?.data === undefined) continue;
    sample.jobs += 1;
    // A publisher may have added any value, including `null`.
    const events: readonly Partial<EventKey>[] = batchedEvents(job.data) ?? [Object(job.data)];
    for (const { eventId, accountId } of events)
      if (eventId !== undefined && accountId !== undefined)
        sample.ids.add(eventJobId({ eventId, accountId }));
    if (job.id !== undefined) sample.ids.add(job.id);
  }
}

/** Combines the samples of several queues. The interval is the intersection of theirs. */
export function mergeSamples(samples: readonly EventSample[]): EventSample {
  return {
    ids: new Set(samples.flatMap(({ ids }) => [...ids])),
    sinceMs: Math.max(...samples.map(({ sinceMs }) => sinceMs)),
    untilMs: Math.min(...samples.map(({ untilMs }) => untilMs)),
    jobs: samples.reduce((sum, { jobs }) => sum + jobs, 0),
  };
}
