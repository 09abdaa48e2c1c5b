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
  /** Called with errors that say that the queue is full. */
  onFull: () => void;
  /** Jobs that the workers of a queue may have in flight together. */
  concurrency: number;
  /** The shards that this process serves; all when omitted. */
  served?: readonly number[] | undefined;
  retentionDays: number;
  /** Undefined while no traces are exported. */
  telemetry: QueueTelemetry | undefined;
}

/** The workers of a queue: none before they are told the map of its shards. */
export interface StartedWorkers {
  workers: ShardWorkers;
  /** By shard. */
  jobsInFlight: ReadonlyMap<number, JobsInFlight>;
}

/** A job whose worker died is taken up by another after about this time. Above the deadline of an attempt. */
const LOCK_DURATION_MS = 15_000;
/** A worker that nobody has woken looks so often; those of further shards less, so that many cost little at rest. */
const LOOK_EVERY_SECONDS = 5;
const LOOK_BESIDE_EVERY_SECONDS = 13;
const STALLED_INTERVAL_MS = 7_500;
/** A job may lose its worker as often as workers die; PostgreSQL knows what is done. */
const STALLED_COUNT_MAX = 1_000_000;
/** The wait before a delivery's next attempt, on its way to the worker's backoff strategy. */
export class NextAttempt extends Error {
  readonly delayMs: number;
  /** The queue counts attempts too, and lost count (its job came back after a crash): the row is right. */
  readonly queueGivesUp: boolean;

  constructor(delayMs: number, queueGivesUp: boolean) {
    super(`next attempt in ${delayMs} ms`);
    // The queue would keep it with the job.
    this.stack = '';
    this.delayMs = delayMs;
    this.queueGivesUp = queueGivesUp;
  }
}

/** The lane has more, or must wait: the queue must not count an attempt. */
export class LaneAgain extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`lane again in ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/** Of one queue. */
interface Work<Data> {
  /** Answers what the listener is told. */
  process: (job: Job<Data>, shard: number) => Promise<unknown>;
  onCompleted?: (job: Job<Data>, result: unknown) => void;
  /** The items of jobs that were fetched and wait. */
  backlog?: Backlog;
  removeOnFail: { count: number; age?: number };
  settings?: WorkerSettings;
}

/** One worker for each shard, all with one bound. */
export function startWorkers<Data>(
  dispatcher: Dispatcher,
  name: WorkedQueue,
  options: WorkerOptions,
  { process, onCompleted, backlog, ...tuned }: Work<Data>,
): StartedWorkers {
  const { backend, concurrency, served, telemetry } = options;
  const jobsInFlight = new Map<number, JobsInFlight>();
  const told = new WeakSet<Error>();
  const workers = new ShardWorkers({
    name,
    concurrency,
    backlog,
    served,
    create(shard, gate) {
      const jobs = jobsInFlight.get(shard) ?? { now: 0, begun: 0 };
      jobsInFlight.set(shard, jobs);
      const guardedProcess = guarded<Data>(dispatcher, name, jobs, (job) => process(job, shard));
      const tuning = {
        ...tuned,
        ...(telemetry && { telemetry }),
        drainDelay: shard === 0 ? LOOK_EVERY_SECONDS : LOOK_BESIDE_EVERY_SECONDS,
        lockDuration: LOCK_DURATION_MS,
        stalledInterval: STALLED_INTERVAL_MS,
        maxStalledCount: STALLED_COUNT_MAX,
        removeOnComplete: { count: 0 },
      };
      const worker = backend.createWorker(name, guardedProcess, tuning, shard, gate);
      if (onCompleted) worker.on('completed', onCompleted);
      return observed(dispatcher, name, worker, options, told);
    },
    onError: (err) => dispatcher.logger.warn({ queue: name, err }, 'worker error'),
  });
  return { workers, jobsInFlight };
}

type WorkedQueue = typeof JOB_RUN_EVENTS | typeof WEBHOOK_DELIVERIES;
type WorkerSettings = NonNullable<Parameters<QueueBackend['createWorker']>[2]['settings']>;

/**
 * A fault of our own must cost no event: the job waits and comes again, whatever attempts its publisher gave it and
 * however long the fault lasts. What we throw on purpose passes.
 */
function guarded<Data>(
  { metrics, logger }: Dispatcher,
  queue: keyof DispatcherMetrics['jobFaults'],
  jobsInFlight: JobsInFlight,
  process: (job: Job<Data>) => Promise<unknown>,
) {
  return async (job: Job<Data>, token?: string): Promise<unknown> => {
    jobsInFlight.now += 1;
    jobsInFlight.begun += 1;
    try {
      return await process(job);
    } catch (error) {
      if (error instanceof UnrecoverableError) throw error;
      if (error instanceof NextAttempt && !error.queueGivesUp) throw error;
      const isFault = !isWait(error);
      if (isFault) {
        metrics.jobFaults[queue].inc();
        logger.error({ jobId: job.id, err: error }, 'job failed, and comes again');
      }
      const delayMs = isFault ? faultDelayMs(job.attemptsStarted) : error.delayMs;
      await job.moveToDelayed(Date.now() + delayMs, token);
      throw new DelayedError();
    } finally {
      jobsInFlight.now -= 1;
    }
  };
}

/** What is thrown to let the job come again, without a fault. */
function isWait(error: unknown): error is { delayMs: number } {
  return error instanceof NextAttempt || error instanceof LaneAgain || error instanceof StoppingError;
}

/** @param told errors that another worker has told of: they share a connection */
function observed<Data>(
  { logger, metrics }: Dispatcher,
  queue: keyof DispatcherMetrics['stalledJobs'],
  worker: Worker<Data>,
  { backend, onFull }: WorkerOptions,
  told: WeakSet<Error>,
): Worker {
  worker.on('error', (error) => {
    if (!told.has(error)) logger.warn({ queue, err: error }, 'worker error');
    told.add(error);
    if (backend.isFull(error)) onFull();
  });
  worker.on('stalled', (jobId) => {
    metrics.stalledJobs[queue].inc();
    logger.warn({ queue, jobId }, 'stalled job taken up again');
  });
  worker.on('lockRenewalFailed', (jobIds) =>
    logger.warn({ queue, jobIds }, 'locks of jobs could not be renewed'),
  );
  return worker as Worker;
}
