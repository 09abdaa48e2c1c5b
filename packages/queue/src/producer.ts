import type { Queue } from 'bullmq';
import type { QueueBackend } from './backends/index.ts';
import type { QueueTelemetry } from './telemetry.ts';

/**
 * A queue to add jobs to, opened by its first call. BullMQ remembers a first connection that failed for ever, so a
 * queue that did not become ready is thrown away and the next call opens another.
 */
export interface Producer<Data> {
  /** Runs one bounded call. Throws `QueueUnavailableError` when the queue did not take it. */
  call<T>(work: (queue: Queue<Data>) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Asked when a queue is opened. */
export type TelemetrySource = () => Promise<QueueTelemetry | undefined>;

export function createProducer<Data>(
  backend: QueueBackend,
  name: string,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
): Producer<Data> {
  let ready: Promise<Queue<Data>> | undefined;

  async function open(): Promise<Queue<Data>> {
    const queue = backend.createQueue<Data>(name, await telemetry?.());
    queue.on('error', onError);
    try {
      await backend.withinCallTimeout(() => queue.waitUntilReady());
      return queue;
    } catch (error) {
      ready = undefined;
      queue.close().catch(onError);
      throw error;
    }
  }

  return {
    async call(work) {
      ready ??= open();
      const queue = await ready;
      return await backend.withinCallTimeout(() => work(queue));
    },
    async close() {
      const queue = await ready?.catch(() => undefined);
      await queue?.close();
    },
  };
}

export type NewJob<Data> = Parameters<Queue<Data>['addBulk']>[0][number];

/**
 * Adds jobs in order; one whose id the queue has already adds nothing. When it throws, some may have been added: whoever
 * tries again brings the same ids.
 */
export async function addJobs<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: NewJob<Data>[],
): Promise<void> {
  // Each added by itself would be a span of its own, under the active trace instead of the job's.
  const isTraced = queue.opts.telemetry !== undefined;
  if (jobs.length > backend.addedSinglyMax || isTraced) {
    await queue.addBulk(jobs);
    return;
  }
  for (const { name, data, opts } of jobs) await queue.add(name, data, opts);
}

/** A thousand lanes that are woken must not stand before everybody else's calls. */
const BULK_SIZE = 100;

/** As {@link addJobs}, in calls that each have the time of one. */
export async function addInBulks<Data>(
  backend: QueueBackend,
  producer: Producer<Data>,
  jobs: NewJob<Data>[],
): Promise<void> {
  for (let start = 0; start < jobs.length; start += BULK_SIZE) {
    const bulk = jobs.slice(start, start + BULK_SIZE);
    await producer.call((queue) => addJobs(backend, queue, bulk));
  }
}

/** Which of the job ids the queue will still work on. One that failed, and is kept to be seen, is none. */
export async function heldBy<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobIds: readonly string[],
): Promise<Set<string>> {
  const states = await backend.jobStates(queue, jobIds);
  return new Set(jobIds.filter((jobId) => states.get(jobId) === 'held'));
}

/**
 * For jobs that were just added, where any is kept as failed: one with its id would have swallowed the new one. An id
 * that is done meanwhile is added once more, which its work finds out.
 */
export async function addInsteadOfFailed<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<void> {
  const idOf = ({ opts }: NewJob<Data>) => opts?.jobId ?? '';
  const failed = await backend.failedAmong(queue, jobs.map(idOf));
  const ended = jobs.filter((job) => failed.has(idOf(job)));
  await Promise.all(ended.map((job) => queue.remove(idOf(job))));
  if (ended.length > 0) await addJobs(backend, queue, ended);
}

/**
 * For jobs that a user who may only add could not add, since BullMQ reads the job whose id is there already: those that there
 * are not. One that is kept as failed stays, and is added under an id that goes on from its own.
 */
export async function addAsGuest<Data>(
  backend: QueueBackend,
  queue: Queue<Data>,
  jobs: readonly NewJob<Data>[],
): Promise<void> {
  const ids = jobs.map(({ opts }) => opts?.jobId ?? '');
  const [present, failed] = await Promise.all([backend.present(queue, ids), backend.failedAmong(queue, ids)]);
  const added = jobs.flatMap((job, index) => {
    const jobId = ids[index] ?? '';
    if (failed.has(jobId)) return [{ ...job, opts: { ...job.opts, jobId: `${jobId}_${Date.now()}` } }];
    return present.has(jobId) ? [] : [job];
  });
  if (added.length > 0) await addJobs(backend, queue, added);
}

/** The job that is taken next. */
export interface JobInLine {
  id: string;
  /** When the one that waits longest was added, in milliseconds since the epoch. */
  addedAtMs: number;
  /** Somebody paused the queue: no worker may take it. */
  isPaused: boolean;
}

/** Two jobs are read, however many wait: the next one, and the next of those that were put behind the others. */
export async function firstInLine<Data>(queue: Queue<Data>): Promise<JobInLine | null> {
  const [[first], [behind], isPaused] = await Promise.all([
    queue.getJobs(['waiting'], 0, 0, true),
    queue.getJobs(['prioritized'], 0, 0, true),
    queue.isPaused(),
  ]);
  const next = first ?? behind;
  if (next?.id === undefined) return null;
  const addedAtMs = Math.min(next.timestamp, behind?.timestamp ?? next.timestamp);
  return { id: next.id, addedAtMs, isPaused };
}
