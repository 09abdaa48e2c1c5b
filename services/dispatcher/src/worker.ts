import { type DeliveryJob, isId, JOB_RUN_EVENTS, type LaneJob, WEBHOOK_DELIVERIES } from '@runhook/contract';
import {
  DelayedError,
  type EventQueue,
  type Job,
  type QueueBackend,
  type QueueTelemetry,
  UnrecoverableError,
  type Worker,
} from '@runhook/queue';
import { deliver } from './deliver.ts';
import type { Dispatcher } from './dispatcher.ts';
import { processEvents } from './event-job.ts';
import { drainLane } from './lane.ts';
import { faultDelayMs } from './policy/outcome.ts';
import { StoppingError } from './record/retry-while-unavailable.ts';
import type { DispatcherMetrics } from './telemetry/metrics.ts';
import type { JobsInFlight } from './telemetry/worker-liveness.ts';

/** This module alone speaks BullMQ: it turns jobs into calls, and results into what the queue should do next. */
export interface WorkerOptions {
  backend: QueueBackend;
  /** Called with errors that say that the queue is full. */
  onFull: () => void;
  /** Jobs that the worker may have in flight. */
  concurrency: number;
  retentionDays: number;
  /** Undefined while no traces are exported. */
  telemetry: QueueTelemetry | undefined;
}

export interface StartedWorker {
  worker: Worker;
  jobsInFlight: JobsInFlight;
}

/** A job whose worker died is taken up by another after about this time. Above the deadline of an attempt. */
const LOCK_DURATION_MS = 15_000;
const STALLED_INTERVAL_MS = 7_500;
/** A job may lose its worker as often as workers die; PostgreSQL knows what is done. */
const STALLED_COUNT_MAX = 1_000_000;
const DAY_SECONDS = 86_400;
/** Malformed messages that stay to be seen, the newest; and what stays of one, enough to tell what it was meant to be. */
const KEPT_MESSAGES_MAX = 1_000;
const KEPT_CHARACTERS_MAX = 16 * 1_024;

/** @param events where the malformed ones of a job with several go */
export function startEventWorker(
  dispatcher: Dispatcher,
  events: Pick<EventQueue, 'addEach'>,
  options: WorkerOptions,
): StartedWorker {
  const jobsInFlight: JobsInFlight = { now: 0, begun: 0 };
  const process = guarded<unknown>(dispatcher, JOB_RUN_EVENTS, jobsInFlight, async (job) => {
    const result = await processEvents(dispatcher, job, options.retentionDays);
    if (result.kind === 'some_malformed') await events.addEach(result.events);
    if (result.kind !== 'malformed') return;
    await shorten(dispatcher, job);
    throw malformed(dispatcher, job, result.problem);
  });
  const worker = options.backend.createWorker(JOB_RUN_EVENTS, process, {
    ...queueOptions(options),
    removeOnFail: { age: options.retentionDays * DAY_SECONDS, count: KEPT_MESSAGES_MAX },
  });
  return { worker: observed(dispatcher, JOB_RUN_EVENTS, worker, options), jobsInFlight };
}

/** A message nobody can deliver stays in the queue's failed jobs, where it can be seen; the next one goes on. */
function malformed({ metrics, logger }: Dispatcher, job: Job<unknown>, problem: string): UnrecoverableError {
  metrics.events.malformed.inc();
  const [jobId, jobName] = [job.id, job.name].map((text) => text?.slice(0, 200));
  logger.warn({ jobId, jobName, problem }, 'malformed event kept as a failed job');
  return new UnrecoverableError(problem);
}

/** Whoever publishes may send any amount of anything: of a long one its beginning stays, as text. */
async function shorten({ logger }: Dispatcher, job: Job<unknown>): Promise<void> {
  const text = JSON.stringify(job.data) ?? '';
  if (text.length <= KEPT_CHARACTERS_MAX) return;
  const beginning = text.slice(0, KEPT_CHARACTERS_MAX);
  try {
    await job.updateData({ characters: text.length, beginning });
  } catch (err) {
    logger.warn({ err, jobId: job.id?.slice(0, 200) }, 'a long malformed event was kept whole');
  }
}

export function startDeliveryWorker(dispatcher: Dispatcher, options: WorkerOptions): StartedWorker {
  const jobsInFlight: JobsInFlight = { now: 0, begun: 0 };
  const process = guarded<DeliveryJob | LaneJob>(dispatcher, WEBHOOK_DELIVERIES, jobsInFlight, (job) =>
    processDelivery(dispatcher, job),
  );
  const worker = options.backend.createWorker<DeliveryJob | LaneJob>(WEBHOOK_DELIVERIES, process, {
    ...queueOptions(options),
    // What is pending is in the database; a job that failed for a fault of ours must not be in its way.
    removeOnFail: { count: 0 },
    settings: {
      backoffStrategy: (_made: number, _type: string | undefined, error: Error | undefined) =>
        error instanceof NextAttempt ? error.delayMs : 0,
    },
  });
  worker.on('completed', (job) => {
    if (isLaneJob(job)) void wakeAgain(dispatcher, job.data);
  });
  return { worker: observed(dispatcher, WEBHOOK_DELIVERIES, worker, options), jobsInFlight };
}

async function processDelivery(dispatcher: Dispatcher, job: Job<DeliveryJob | LaneJob>): Promise<void> {
  if (isLaneJob(job)) return await processLane(dispatcher, job.data);
  return await processNextStep(dispatcher, job as Job<DeliveryJob>);
}

async function processNextStep(dispatcher: Dispatcher, job: Job<DeliveryJob>): Promise<void> {
  if (!isId('delivery', job.data?.deliveryId))
    throw new UnrecoverableError('deliveryId is not a delivery id');
  const result = await deliver(dispatcher, job.data);
  if (result.kind === 'again') {
    const queueGivesUp = job.attemptsMade + 1 >= (job.opts.attempts ?? 1);
    throw new NextAttempt(result.delayMs, queueGivesUp);
  }
}

function isLaneJob(job: Job<DeliveryJob | LaneJob>): job is Job<LaneJob> {
  return isId('subscription', (job.data as Partial<LaneJob> | undefined)?.subscriptionId);
}

async function processLane(dispatcher: Dispatcher, lane: LaneJob): Promise<void> {
  const result = await drainLane(dispatcher, lane);
  if (result.kind === 'again') throw new LaneAgain(result.delayMs);
}

/**
 * What was parked while the lane's job was ending found it still there, and made no other. Whoever parks commits before
 * it looks for the job, so what is asked for once the job is gone misses nothing.
 */
async function wakeAgain({ record, queue, logger }: Dispatcher, job: LaneJob): Promise<void> {
  const { subscriptionId } = job;
  try {
    const { accountId = await record.accountOf(job) } = job;
    if (accountId === null) return;
    const lane = { subscriptionId, accountId };
    if (await record.hasParked(lane)) queue.wakeLane(lane);
  } catch (err) {
    if (!(err instanceof StoppingError)) logger.warn({ err, subscriptionId }, 'a lane was left to upkeep');
  }
}

/** The wait before a delivery's next attempt, on its way to the worker's backoff strategy. */
class NextAttempt extends Error {
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
class LaneAgain extends Error {
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`lane again in ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

function queueOptions({ concurrency, telemetry }: WorkerOptions) {
  return {
    ...(telemetry && { telemetry }),
    concurrency,
    lockDuration: LOCK_DURATION_MS,
    stalledInterval: STALLED_INTERVAL_MS,
    maxStalledCount: STALLED_COUNT_MAX,
    removeOnComplete: { count: 0 },
  };
}

/**
 * A fault of our own must cost no event: the job waits and comes again, whatever attempts its publisher gave it and
 * however long the fault lasts. What we throw on purpose passes.
 */
function guarded<Data>(
  { metrics, logger }: Dispatcher,
  queue: keyof DispatcherMetrics['jobFaults'],
  jobsInFlight: JobsInFlight,
  process: (job: Job<Data>) => Promise<void>,
) {
  return async (job: Job<Data>, token?: string): Promise<void> => {
    jobsInFlight.now += 1;
    jobsInFlight.begun += 1;
    try {
      await process(job);
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

function observed<Data>(
  { logger, metrics }: Dispatcher,
  queue: keyof DispatcherMetrics['stalledJobs'],
  worker: Worker<Data>,
  { backend, onFull }: WorkerOptions,
): Worker {
  worker.on('error', (error) => {
    logger.warn({ queue, err: error }, 'worker error');
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
