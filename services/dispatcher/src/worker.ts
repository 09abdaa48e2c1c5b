import {
  type DeliveryJob,
  eventIdForJob,
  isId,
  JOB_RUN_EVENTS,
  type JobRunEvent,
  parseEvent,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import { DelayedError, type Job, type QueueBackend, UnrecoverableError, type Worker } from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { DeliverResult } from './deliver.ts';
import type { FanOutResult } from './fan-out.ts';
import type { DispatcherMetrics } from './metrics.ts';
import { StoppingError } from './patience.ts';

/** The only module that speaks BullMQ: it turns jobs into calls and results into what the queue should do next. */
export interface WorkerDependencies {
  backend: QueueBackend;
  concurrency: number;
  retentionDays: number;
  fanOut: (event: JobRunEvent, interrupted: boolean) => Promise<FanOutResult>;
  deliver: (job: DeliveryJob) => Promise<DeliverResult>;
  metrics: DispatcherMetrics;
  logger: Logger;
}

/** A job whose worker died is taken up by another after about this time. Above the deadline of an attempt. */
const LOCK_DURATION_MS = 15_000;
const STALLED_INTERVAL_MS = 7_500;
/** A job may lose its worker as often as workers die; PostgreSQL knows what is done. */
const STALLED_COUNT_MAX = 1_000_000;
/** How often a job may fail for a fault of our own before it is kept as failed. */
const STARTS_MAX = 20;
const FAULT_DELAY_MAX_MS = 60_000;
const DAY_SECONDS = 86_400;

/** The wait before a delivery's next attempt, on its way to the worker's backoff strategy. */
class NextAttempt extends Error {
  readonly delayMs: number;
  /** The queue counts attempts too, and lost count (its job came back after a crash): it must not give up. */
  readonly beyondCount: boolean;

  constructor(delayMs: number, beyondCount: boolean) {
    super(`next attempt in ${delayMs} ms`);
    this.delayMs = delayMs;
    this.beyondCount = beyondCount;
  }
}

export function startEventWorker(dependencies: WorkerDependencies): Worker {
  const { backend, fanOut, metrics, retentionDays } = dependencies;
  const process = guarded<unknown>(dependencies, async (job) => {
    const { event, problems } = parseEvent(job.data, {
      eventId: eventIdForJob(job.id ?? '', job.timestamp),
      timestampMs: job.timestamp,
      nowMs: Date.now(),
      retentionDays,
    });
    if (problems) throw malformed(dependencies, job, problems.map(({ message }) => message).join('; '));
    const result = await fanOut(event, job.attemptsStarted > 1);
    if (result.kind === 'unknown_account') throw malformed(dependencies, job, 'accountId is not an account');
    metrics.events.inc({ result: result.kind });
  });
  return observed(dependencies, backend.createWorker(JOB_RUN_EVENTS, process, workerOptions(dependencies)));
}

export function startDeliveryWorker(dependencies: WorkerDependencies): Worker {
  const { backend, deliver } = dependencies;
  const process = guarded<DeliveryJob>(dependencies, async (job) => {
    if (!isId('delivery', job.data?.deliveryId))
      throw new UnrecoverableError('deliveryId is not a delivery id');
    const result = await deliver(job.data);
    if (result.kind === 'again')
      throw new NextAttempt(result.delayMs, job.attemptsMade + 1 >= (job.opts.attempts ?? 1));
  });
  const backoffStrategy = (_made: number, _type: string | undefined, error: Error | undefined) =>
    error instanceof NextAttempt ? error.delayMs : 0;
  const options = { ...workerOptions(dependencies), settings: { backoffStrategy } };
  return observed(dependencies, backend.createWorker<DeliveryJob>(WEBHOOK_DELIVERIES, process, options));
}

function workerOptions({ concurrency, retentionDays }: WorkerDependencies) {
  return {
    concurrency,
    lockDuration: LOCK_DURATION_MS,
    stalledInterval: STALLED_INTERVAL_MS,
    maxStalledCount: STALLED_COUNT_MAX,
    removeOnComplete: { count: 0 },
    removeOnFail: { age: retentionDays * DAY_SECONDS },
  };
}

/** A message nobody can deliver stays in the queue's failed jobs, where it can be seen; the next one goes on. */
function malformed({ metrics, logger }: WorkerDependencies, job: Job, problem: string): UnrecoverableError {
  metrics.events.inc({ result: 'malformed' });
  logger.warn({ jobId: job.id, jobName: job.name, problem }, 'malformed event kept as a failed job');
  return new UnrecoverableError(problem);
}

/**
 * A fault of our own must cost no event: the job waits and comes again, whatever attempts its publisher gave it.
 * What we throw on purpose passes.
 */
function guarded<Data>({ logger }: WorkerDependencies, process: (job: Job<Data>) => Promise<void>) {
  return async (job: Job<Data>, token?: string): Promise<void> => {
    try {
      await process(job);
    } catch (error) {
      if (error instanceof UnrecoverableError) throw error;
      if (error instanceof NextAttempt && !error.beyondCount) throw error;
      const delayMs = waitAfter(error, job, logger);
      if (delayMs === null) throw error;
      await job.moveToDelayed(Date.now() + delayMs, token);
      throw new DelayedError();
    }
  };
}

/** Milliseconds until the job comes again, or null when it has failed too often. */
function waitAfter(error: unknown, job: Job, logger: Logger): number | null {
  if (error instanceof NextAttempt) return error.delayMs;
  if (error instanceof StoppingError) return 0;
  logger.error({ jobId: job.id, err: error }, 'job failed');
  return job.attemptsStarted < STARTS_MAX
    ? Math.min(1_000 * 2 ** job.attemptsStarted, FAULT_DELAY_MAX_MS)
    : null;
}

function observed<Data>({ logger, metrics }: WorkerDependencies, worker: Worker<Data>): Worker {
  const queue = worker.name;
  worker.on('error', (error) => logger.warn({ queue, err: error }, 'worker error'));
  worker.on('stalled', (jobId) => {
    metrics.stalledJobs.inc({ queue });
    logger.warn({ queue, jobId }, 'stalled job taken up again');
  });
  worker.on('lockRenewalFailed', (jobIds) =>
    logger.warn({ queue, jobIds }, 'locks of jobs could not be renewed'),
  );
  return worker as Worker;
}
