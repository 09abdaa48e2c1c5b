import {
  codePointLength,
  type DeliveryJob,
  isId,
  isLongerThan,
  JOB_RUN_EVENTS,
  type LaneJob,
  shardOf,
  truncateText,
  WEBHOOK_DELIVERIES,
  wellFormedText,
} from '@runhook/contract';
import { DISPATCHER_WORKER_NAME, type EventQueue, type Job, UnrecoverableError } from '@runhook/queue';
import { deliver } from './deliver.ts';
import type { Dispatcher } from './dispatcher.ts';
import { processEvents } from './event-job.ts';
import { drainLane } from './lane.ts';
import { StoppingError } from './record/retry-while-unavailable.ts';
import {
  RescheduleLane,
  RetryLater,
  type StartedWorkers,
  startWorkers,
  type WorkerOptions,
} from './shard-worker.ts';

/* Only this module and shard-worker.ts call BullMQ: they turn jobs into calls, and results into actions of the queue. */

const DAY_SECONDS = 86_400;
/** Maximum number of malformed messages that each shard retains for inspection, and of characters of each. */
const STORED_MESSAGES_MAX = 1_000;
const STORED_CHARACTERS_MAX = 16 * 1_024;

/** @param events the queue of the events, to which malformed ones of a shared job are added in separate jobs */
export function startEventWorkers(
  dispatcher: Dispatcher,
  events: Pick<EventQueue, 'addEach'>,
  options: WorkerOptions,
): StartedWorkers {
  return startWorkers<unknown>(dispatcher, JOB_RUN_EVENTS, options, {
    backlog: dispatcher.events,
    removeOnFail: { age: options.retentionDays * DAY_SECONDS, count: STORED_MESSAGES_MAX },
    async process(job) {
      const result = await processEvents(dispatcher, job, options.retentionDays);
      if (result.kind === 'some_malformed') await events.addEach(result.events);
      if (result.kind !== 'malformed') {
        // BullMQ's list of fetched jobs references each job for longer than its processing takes.
        job.data = undefined;
        return;
      }
      await truncateMessage(dispatcher, job);
      throw reportMalformed(dispatcher, job, result.problem);
    },
  });
}

/** Counts and logs a malformed message. Returns the error by which BullMQ moves its job to the failed set. */
function reportMalformed(
  { metrics, logger }: Dispatcher,
  job: Job<unknown>,
  problem: string,
): UnrecoverableError {
  metrics.events.malformed.inc();
  const [jobId, jobName] = [job.id, job.name].map((text) => text?.slice(0, 200));
  logger.warn({ jobId, jobName, problem }, 'malformed event stored as a failed job');
  return new UnrecoverableError(problem);
}

/** Shortens a long message to its beginning, as text, because publishers may send messages of any size. */
async function truncateMessage({ logger }: Dispatcher, job: Job<unknown>): Promise<void> {
  try {
    // Throws if the message is nested more deeply than the stack allows.
    const text = JSON.stringify(job.data) ?? '';
    if (!isLongerThan(text, STORED_CHARACTERS_MAX)) return;
    const beginning = wellFormedText(truncateText(text, STORED_CHARACTERS_MAX));
    await job.updateData({ characters: codePointLength(text), beginning });
  } catch (err) {
    logger.warn({ err, jobId: job.id?.slice(0, 200) }, 'a malformed event could not be truncated');
  }
}

export function startDeliveryWorkers(dispatcher: Dispatcher, options: WorkerOptions): StartedWorkers {
  return startWorkers<DeliveryJob | LaneJob>(dispatcher, WEBHOOK_DELIVERIES, options, {
    name: DISPATCHER_WORKER_NAME,
    // Pending deliveries are in the database; a job that failed must not block a new one with the same id.
    removeOnFail: { count: 0 },
    settings: {
      backoffStrategy: (_made: number, _type: string | undefined, error: Error | undefined) =>
        error instanceof RetryLater ? error.delayMs : 0,
    },
    process: (job, shard) => processDelivery(dispatcher, job, hasMovedShard(options, job, shard)),
    onCompleted(job, result) {
      if (isLaneJob(job) && result !== MOVED) void rewakeLane(dispatcher, job.data);
    },
  });
}

/** Result of a job that continues in its account's current shard. */
const MOVED = 'moved';

/**
 * Whether the job's account has moved to another shard. Its next run is queued there: a shard without accounts is then
 * empty after the longest wait, and a search finds the job in the shard of its account.
 */
function hasMovedShard(
  { backend }: WorkerOptions,
  { data }: Job<DeliveryJob | LaneJob>,
  shard: number,
): boolean {
  const accountId = data?.accountId;
  return accountId !== undefined && shardOf(backend.shardMaps.cached, accountId) !== shard;
}

async function processDelivery(
  dispatcher: Dispatcher,
  job: Job<DeliveryJob | LaneJob>,
  isMoved: boolean,
): Promise<string | undefined> {
  if (isLaneJob(job)) return await processLane(dispatcher, job.data, isMoved);
  return await processNextStep(dispatcher, job as Job<DeliveryJob>, isMoved);
}

async function processNextStep(
  dispatcher: Dispatcher,
  job: Job<DeliveryJob>,
  isMoved: boolean,
): Promise<string | undefined> {
  if (!isId('delivery', job.data?.deliveryId))
    throw new UnrecoverableError('deliveryId is not a delivery id');
  const { deliveryId, cycle, accountId } = job.data;
  const result = await deliver(dispatcher, job.data);
  if (result.kind === 'done') return undefined;
  const attemptsLeft = (job.opts.attempts ?? 1) - job.attemptsMade - 1;
  if (!isMoved || accountId === undefined) throw new RetryLater(result.delayMs, attemptsLeft <= 0);
  const { delayMs } = result;
  await dispatcher.queue.enqueue({
    deliveryId,
    cycle,
    accountId,
    delayMs,
    attemptsLeft: Math.max(1, attemptsLeft),
  });
  return MOVED;
}

function isLaneJob(job: Job<DeliveryJob | LaneJob>): job is Job<LaneJob> {
  return isId('subscription', (job.data as Partial<LaneJob> | undefined)?.subscriptionId);
}

async function processLane(
  dispatcher: Dispatcher,
  lane: LaneJob,
  isMoved: boolean,
): Promise<string | undefined> {
  const { subscriptionId, accountId } = lane;
  const result = await drainLane(dispatcher, lane);
  if (result.kind === 'done') return undefined;
  if (!isMoved || accountId === undefined) throw new RescheduleLane(result.delayMs);
  dispatcher.queue.wakeLane({ subscriptionId, accountId, delayMs: result.delayMs });
  return MOVED;
}

/**
 * Wakes a lane whose job has ended. A delivery that was deferred while the job was ending found the job in the queue
 * and added no other. It was committed before that check, so a check after the job has ended finds it.
 */
async function rewakeLane({ record, queue, logger }: Dispatcher, job: LaneJob): Promise<void> {
  const { subscriptionId } = job;
  try {
    const { accountId = await record.loadAccountId(job) } = job;
    if (accountId === null) return;
    const lane = { subscriptionId, accountId };
    if (await record.hasDeferred(lane)) queue.wakeLane(lane);
  } catch (err) {
    if (!(err instanceof StoppingError))
      logger.warn({ err, subscriptionId }, 'a lane could not be woken; maintenance will wake it');
  }
}
