import {
  type DeliveryJob,
  eventIdForJob,
  isId,
  JOB_RUN_EVENTS,
  type JobRunEvent,
  parseEvent,
  WEBHOOK_DELIVERIES,
} from '@runhook/contract';
import {
  DelayedError,
  type Job,
  type QueueBackend,
  type QueueTelemetry,
  UnrecoverableError,
  type Worker,
} from '@runhook/queue';
import type { Logger } from '@runhook/runtime';
import type { DeliverResult } from './deliver.ts';
import type { FanOutResult } from './fan-out.ts';
import { StoppingError } from './record/open-record.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { Hand } from './telemetry/worker-liveness.ts';

/** The only module that speaks BullMQ: it turns jobs into calls and results into what the queue should do next. */
export interface WorkerDependencies {
  backend: QueueBackend;
  concurrency: number;
  retentionDays: number;
  fanOut: (event: JobRunEvent, interrupted: boolean) => Promise<FanOutResult>;
  deliver: (job: DeliveryJob) => Promise<DeliverResult>;
  metrics: DispatcherMetrics;
  logger: Logger;
  /** Undefined while no traces are exported. */
  telemetry: QueueTelemetry | undefined;
}

export interface StartedWorker {
  worker: Worker;
  hand: Hand;
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
    // The queue would keep it with the job.
    this.stack = '';
    this.delayMs = delayMs;
    this.beyondCount = beyondCount;
  }
}

/** The job comes again without having made an attempt: the queue must not count one. */
class PutOff extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`put off for ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

export function startEventWorker(dependencies: WorkerDependencies): StartedWorker {
  const { backend, fanOut, metrics, retentionDays } = dependencies;
  const hand: Hand = { jobs: 0, begun: 0 };
  const process = guarded<unknown>(dependencies, hand, async (job) => {
    const { event, problems } = parseEvent(job.data, {
      eventId: () => eventIdForJob(job.id ?? '', job.timestamp),
      timestampMs: job.timestamp,
      nowMs: Date.now(),
      retentionDays,
    });
    if (problems) throw malformed(dependencies, job, problems.map(({ message }) => message).join('; '));
    const result = await fanOut(event, job.attemptsStarted > 1);
    if (result.kind === 'unknown_account') throw malformed(dependencies, job, 'accountId is not an account');
    metrics.events[result.kind].inc();
  });
  const worker = backend.createWorker(JOB_RUN_EVENTS, process, workerOptions(dependencies));
  return { worker: observed(dependencies, JOB_RUN_EVENTS, worker), hand };
}

export function startDeliveryWorker(dependencies: WorkerDependencies): StartedWorker {
  const { backend, deliver } = dependencies;
  const hand: Hand = { jobs: 0, begun: 0 };
  const process = guarded<DeliveryJob>(dependencies, hand, async (job) => {
    if (!isId('delivery', job.data?.deliveryId))
      throw new UnrecoverableError('deliveryId is not a delivery id');
    const result = await deliver(job.data);
    if (result.kind === 'put_off') throw new PutOff(result.delayMs);
    if (result.kind === 'again')
      throw new NextAttempt(result.delayMs, job.attemptsMade + 1 >= (job.opts.attempts ?? 1));
  });
  const backoffStrategy = (_made: number, _type: string | undefined, error: Error | undefined) =>
    error instanceof NextAttempt ? error.delayMs : 0;
  // What is pending is in the database; a job that failed for a fault of ours must not be in its way.
  const removeOnFail = { count: 0 };
  const options = { ...workerOptions(dependencies), removeOnFail, settings: { backoffStrategy } };
  const worker = backend.createWorker<DeliveryJob>(WEBHOOK_DELIVERIES, process, options);
  return { worker: observed(dependencies, WEBHOOK_DELIVERIES, worker), hand };
}

function workerOptions({ concurrency, retentionDays, telemetry }: WorkerDependencies) {
  return {
    ...(telemetry && { telemetry }),
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
  metrics.events.malformed.inc();
  logger.warn({ jobId: job.id, jobName: job.name, problem }, 'malformed event kept as a failed job');
  return new UnrecoverableError(problem);
}

/**
 * A fault of our own must cost no event: the job waits and comes again, whatever attempts its publisher gave it.
 * What we throw on purpose passes.
 */
function guarded<Data>(
  { logger }: WorkerDependencies,
  hand: Hand,
  process: (job: Job<Data>) => Promise<void>,
) {
  return async (job: Job<Data>, token?: string): Promise<void> => {
    hand.jobs += 1;
    hand.begun += 1;
    try {
      await process(job);
    } catch (error) {
      if (error instanceof UnrecoverableError) throw error;
      if (error instanceof NextAttempt && !error.beyondCount) throw error;
      const delayMs = waitAfter(error, job, logger);
      if (delayMs === null) throw error;
      await job.moveToDelayed(Date.now() + delayMs, token);
      throw new DelayedError();
    } finally {
      hand.jobs -= 1;
    }
  };
}

/** Milliseconds until the job comes again, or null when it has failed too often. */
function waitAfter(error: unknown, job: Job, logger: Logger): number | null {
  if (error instanceof NextAttempt || error instanceof PutOff) return error.delayMs;
  if (error instanceof StoppingError) return 0;
  logger.error({ jobId: job.id, err: error }, 'job failed');
  return job.attemptsStarted < STARTS_MAX
    ? Math.min(1_000 * 2 ** job.attemptsStarted, FAULT_DELAY_MAX_MS)
    : null;
}

function observed<Data>(
  { logger, metrics }: WorkerDependencies,
  queue: keyof DispatcherMetrics['stalledJobs'],
  worker: Worker<Data>,
): Worker {
  worker.on('error', (error) => logger.warn({ queue, err: error }, 'worker error'));
  worker.on('stalled', (jobId) => {
    metrics.stalledJobs[queue].inc();
    logger.warn({ queue, jobId }, 'stalled job taken up again');
  });
  worker.on('lockRenewalFailed', (jobIds) =>
    logger.warn({ queue, jobIds }, 'locks of jobs could not be renewed'),
  );
  return worker as Worker;
}
