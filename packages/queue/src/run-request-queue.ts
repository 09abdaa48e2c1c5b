import { JOB_RUN_REQUESTS, type RunRequest, runRequestJobId } from '@runhook/contract';
import { DelayedError, type Worker } from 'bullmq';
import type { QueueBackend } from './backends/index.ts';
import { addInBulks, createProducer } from './producer.ts';

/** The producer's side of `job-run-requests`. */
export interface RunRequestQueue {
  /** Adds a job for each request that has none. Throws `QueueUnavailableError`. */
  add(requests: readonly RunRequest[]): Promise<void>;
  /** Removes the jobs of requests that no runner needs to take any more; a job that a worker has is skipped. */
  remove(requests: readonly RunRequest[]): Promise<void>;
  close(): Promise<void>;
}

export function openRunRequestQueue(backend: QueueBackend, onError: (error: Error) => void): RunRequestQueue {
  const producer = createProducer<RunRequest>(backend, JOB_RUN_REQUESTS, onError);
  return {
    // All jobs are on shard 0, that of items without an account: they are few, and runners need no map of the shards.
    add: (requests) =>
      addInBulks(
        backend,
        producer,
        requests.map((request) => ({ accountId: undefined, request })),
        toJob,
      ),
    remove: (requests) =>
      producer.call(async (queue) => {
        await Promise.all(
          requests.map((request) => queue.remove(runRequestJobId(request)).catch(() => undefined)),
        );
      }),
    close: () => producer.close(),
  };
}

function toJob({ request }: { request: RunRequest }) {
  return {
    name: 'run',
    data: request,
    opts: { jobId: runRequestJobId(request), removeOnComplete: true, removeOnFail: true },
  };
}

/** Time until a job that a runner does not take is offered again. */
const RETURN_MS = 500;

/**
 * Starts a worker that processes up to `concurrency` requests at a time. A request for which `process` resolves with
 * false returns to the queue for another worker. The lease of a run, and not BullMQ's lock of the job, determines whether
 * another runner gets the run of a runner that died: its job, which is offered again, has no effect.
 */
export function createRunRequestWorker(
  backend: QueueBackend,
  process: (request: RunRequest) => Promise<boolean>,
  concurrency: number,
): Worker {
  return backend.createWorker<RunRequest>(
    JOB_RUN_REQUESTS,
    async (job, token) => {
      if (await process(job.data)) return;
      await job.moveToDelayed(Date.now() + RETURN_MS, token);
      throw new DelayedError();
    },
    { concurrency, removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } },
  ) as Worker;
}
