import type { JOB_RUN_EVENTS, WEBHOOK_DELIVERIES } from '@runhook/contract';
import {
  type Backlog,
  DelayedError,
  type Job,
  type QueueBackend,
  type QueueTelemetry,
  ShardWorkers,
  UnrecoverableError,
  type Worker,
} from '@runhook/queue';
import type { Dispatcher } from './dispatcher.ts';
import { faultDelayMs } from './policy/outcome.ts';
import { StoppingError } from './record/retry-while-unavailable.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { JobsInFlight } from './telemetry/worker-liveness.ts';

export interface WorkerOptions {
  backend: QueueBackend;
  /** Called after each error that means that the queue is full. */
  onFull: () => void;
  /** Maximum number of jobs that the workers of a queue have in flight together. */
  concurrency: number;
  /** The shards that this process serves; all when omitted. */
  served?: readonly number[] | undefined;
  retentionDays: number;
  /** Undefined when no traces are exported. */
  telemetry: QueueTelemetry | undefined;
}

/** The workers of a queue, one for each served shard; none until they get the shard map. */
export interface StartedWorkers {
  workers: ShardWorkers;
  /** Jobs in flight by shard. */
  jobsInFlight: ReadonlyMap<number, JobsInFlight>;
}

/** Time without renewal after which another worker may take a job. Longer than the default deadline of an attempt. */
const LOCK_DURATION_MS = 15_000;
/** Interval at which an idle worker checks for jobs without a notification; longer beyond shard 0, to reduce cost. */
const POLL_EVERY_SECONDS = 5;
const EXTRA_SHARD_POLL_EVERY_SECONDS = 13;
const STALLED_INTERVAL_MS = 7_500;
/** A job may lose its worker any number of times; the progress is in PostgreSQL. */
const STALLED_COUNT_MAX = 1_000_000;
/** Thrown to pass the wait before a delivery's next attempt to the worker's backoff strategy. */
export class RetryLater extends Error {
  readonly delayMs: number;
  /** Whether no attempt is left by the queue's count, which may be wrong after a crash; the delivery's row decides. */
  readonly isQueueExhausted: boolean;

  constructor(delayMs: number, isQueueExhausted: boolean) {
    super(`next attempt in ${delayMs} ms`);
    // The queue would store the stack with the job.
    this.stack = '';
    this.delayMs = delayMs;
    this.isQueueExhausted = isQueueExhausted;
  }
}

/** Thrown if the job of a lane must run again; the queue must not count this as an attempt. */
export class RescheduleLane extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`lane rescheduled in ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/** Processing of one queue. */
interface QueueWork<Data> {
  /** Processes a job. The result is passed to `onCompleted`. */
  process: (job: Job<Data>, shard: number) => Promise<unknown>;
  onCompleted?: (job: Job<Data>, result: unknown) => void;
  /** Items of fetched jobs that wait in the process; while it is saturated, no job is fetched. */
  backlog?: Backlog;
  removeOnFail: { count: number; age?: number };
  /** Name of the workers in the list of clients of the queue's server. */
  name?: string;
  settings?: WorkerSettings;
}

/** Creates the workers of a queue, one for each served shard, with a common limit of jobs in flight. */
export function startWorkers<Data>(
  dispatcher: Dispatcher,
  name: QueueName,
  options: WorkerOptions,
  { process, onCompleted, backlog, ...workerTuning }: QueueWork<Data>,
): StartedWorkers {
  const { backend, concurrency, served, telemetry } = options;
  const jobsInFlight = new Map<number, JobsInFlight>();
  const loggedErrors = new WeakSet<Error>();
  const workers = new ShardWorkers({
    name,
    concurrency,
    backlog,
    served,
    create(shard, sharedConcurrency) {
      const jobs = jobsInFlight.get(shard) ?? { current: 0, started: 0 };
      jobsInFlight.set(shard, jobs);
      const guardedProcess = guardProcessor<Data>(dispatcher, name, jobs, (job) => process(job, shard));
      const tuning = {
        ...workerTuning,
        ...(telemetry && { telemetry }),
        drainDelay: shard === 0 ? POLL_EVERY_SECONDS : EXTRA_SHARD_POLL_EVERY_SECONDS,
        lockDuration: LOCK_DURATION_MS,
        stalledInterval: STALLED_INTERVAL_MS,
        maxStalledCount: STALLED_COUNT_MAX,
        removeOnComplete: { count: 0 },
      };
      const worker = backend.createWorker(name, guardedProcess, tuning, shard, sharedConcurrency);
      if (onCompleted) worker.on('completed', onCompleted);
      return observeWorker(dispatcher, name, worker, options, loggedErrors);
    },
    onError: (err) => dispatcher.logger.warn({ queue: name, err }, 'worker error'),
  });
  return { workers, jobsInFlight };
}

type QueueName = typeof JOB_RUN_EVENTS | typeof WEBHOOK_DELIVERIES;
type WorkerSettings = NonNullable<Parameters<QueueBackend['createWorker']>[2]['settings']>;

/**
 * Wraps a processor so that an internal error loses no event: the job is delayed and retried, whatever its number of
 * attempts, for as long as the error lasts. UnrecoverableError, and RetryLater while attempts are left, are passed on.
 */
function guardProcessor<Data>(
  { metrics, logger }: Dispatcher,
  queue: keyof DispatcherMetrics['jobErrors'],
  jobsInFlight: JobsInFlight,
  process: (job: Job<Data>) => Promise<unknown>,
) {
  return async (job: Job<Data>, token?: string): Promise<unknown> => {
    jobsInFlight.current += 1;
    jobsInFlight.started += 1;
    try {
      return await process(job);
    } catch (error) {
      if (error instanceof UnrecoverableError) throw error;
      if (error instanceof RetryLater && !error.isQueueExhausted) throw error;
      const isFault = !isReschedule(error);
      if (isFault) {
        metrics.jobErrors[queue].inc();
        logger.error({ jobId: job.id, err: error }, 'job failed, will retry');
      }
      const delayMs = isFault ? faultDelayMs(job.attemptsStarted) : error.delayMs;
      await job.moveToDelayed(Date.now() + delayMs, token);
      throw new DelayedError();
    } finally {
      jobsInFlight.current -= 1;
    }
  };
}

/** Whether an error is no fault, but only makes the job run again. */
function isReschedule(error: unknown): error is { delayMs: number } {
  return error instanceof RetryLater || error instanceof RescheduleLane || error instanceof StoppingError;
}

/** @param loggedErrors errors that another worker has logged: the workers share a connection */
function observeWorker<Data>(
  { logger, metrics }: Dispatcher,
  queue: keyof DispatcherMetrics['stalledJobs'],
  worker: Worker<Data>,
  { backend, onFull }: WorkerOptions,
  loggedErrors: WeakSet<Error>,
): Worker {
  worker.on('error', (error) => {
    if (!loggedErrors.has(error)) logger.warn({ queue, err: error }, 'worker error');
    loggedErrors.add(error);
    if (backend.isFull(error)) onFull();
  });
  worker.on('stalled', (jobId) => {
    metrics.stalledJobs[queue].inc();
    logger.warn({ queue, jobId }, 'stalled job queued again');
  });
  worker.on('lockRenewalFailed', (jobIds) =>
    logger.warn({ queue, jobIds }, 'job locks could not be renewed'),
  );
  return worker as Worker;
}
