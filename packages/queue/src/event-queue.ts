import { hash } from 'node:crypto';
import {
  batchedEvents,
  EVENT_BATCH,
  type EventBatch,
  eventJobId,
  JOB_RUN_EVENTS,
  type PublishedEvent,
  type ReportedRunStep,
  stepsBytes,
} from '@runhook/contract';
import type { JobsOptions, Queue } from 'bullmq';
import type { ForeignPublishers, PeekedJob, RejectedJob } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';
import { type BurstLimiter, createBurstLimiter } from './burst-limiter.ts';
import { type EventSample, mergeSamples, sampleEvents } from './event-sample.ts';
import { findLongestWaitingJob, type NextJob, readNextJobs } from './next-job.ts';
import {
  addAsAddOnlyUser,
  addJobs,
  countJobs,
  createProducer,
  findQueuedOnAnyShard,
  jobIdOf,
  type NewJob,
  replaceFailed,
  type TelemetrySource,
  throwIfRejected,
} from './producer.ts';
import { QueueCapacity } from './queue-capacity.ts';
import { type EventLookup, queuedEvents } from './queued-events.ts';

/** A bulk call of this many usual events takes less than 50 ms on Redis. The bytes of text as UTF-8 bound its memory. */
const BULK_MAX = { events: 500, bytes: 8 * 1024 * 1024 };

/** An event with an assigned id, ready for the queue, perhaps with steps of its run. */
export type IdentifiedEvent = PublishedEvent & {
  eventId: string;
  run_steps?: readonly ReportedRunStep[] | undefined;
};

type EventMessage = PublishedEvent | EventBatch;

/** The producer's side of `job-run-events`. */
export interface EventQueue {
  /**
   * Adds events in order. Events beyond their account's burst limit get low priority. Several events share a job,
   * unless traces are exported. A job is not added if one of exactly the same events is queued. After an error some
   * events may have been added: repeating the call with the same events creates the same jobs.
   * @param traceContexts of each event, where a call adds events of many traces; the active one when omitted
   * @throws QueueUnavailableError; QueueFullError while the server has little memory left, which its jobs need to be
   * processed; JobsRejectedError for events whose data the server rejects, once all others are added
   */
  add(events: readonly IdentifiedEvent[], traceContexts?: readonly (string | null)[]): Promise<void>;
  /** Adds each event in a separate job, for events that need separate retries, or stay as failed jobs. */
  addEach(events: readonly IdentifiedEvent[]): Promise<void>;
  /** Adds each event that the queue has lost in a separate job, after removing the key of its orphaned job. */
  requeue(events: readonly IdentifiedEvent[]): Promise<void>;
  /** Returns up to `count` waiting jobs, the next one first, also from a full server; see `Connector.peek`. */
  peek(count: number): Promise<PeekedJob<unknown>[]>;
  /** Removes waiting jobs whose events were processed without a worker. */
  discard(jobs: readonly Pick<PeekedJob<unknown>, 'id' | 'shard'>[]): Promise<void>;
  /**
   * Returns the {@link eventJobId} of the events that are queued; see {@link queuedEvents}. A job that is retained as failed
   * does not count, and neither does an orphaned key, which is in no list.
   */
  findQueued(events: readonly EventLookup[]): Promise<Set<string>>;
  /** The events of a part of the queue, read from its jobs; see {@link sampleEvents}. */
  sample(options: { fraction: number; jobsMax: number }): Promise<EventSample>;
  /** Returns the number of jobs by state: waiting, active, delayed, and failed, where malformed messages are retained. */
  counts(): Promise<Record<string, number>>;
  /** Writes BullMQ's limit of the event stream to an emptied queue; publishers whose user may only add cannot. */
  restoreSettings(): Promise<void>;
  /** Loads the function for publishers whose user may only add, where a server lacks it. */
  loadPublishFunction(): Promise<void>;
  /** Returns the time of the queue's server, in milliseconds since the epoch; null if the user may not read it. */
  serverTimeMs(): Promise<number | null>;
  /** Returns traces of publishers that are not configured for this queue. */
  findForeignPublishers(): Promise<ForeignPublishers>;
  /** Returns the next job of the shard on which a job has waited longest; null when none waits. */
  nextJob(): Promise<NextJob | null>;
  /** Returns the waiting job that a worker would take next, for each shard that may have jobs; null when none waits. */
  nextJobs(): Promise<Map<number, NextJob | null>>;
  close(): Promise<void>;
}

const JOB_OPTIONS: JobsOptions = { removeOnComplete: true };
/** Options of events beyond the burst limit: BullMQ takes jobs without a priority before those that have one. */
const LOW_PRIORITY: JobsOptions = { ...JOB_OPTIONS, priority: 1 };

export function openEventQueue(
  backend: QueueBackend,
  onError: (error: Error) => void,
  telemetry?: TelemetrySource,
  burstLimiter: BurstLimiter = createBurstLimiter(),
): EventQueue {
  const producer = createProducer<EventMessage>(backend, JOB_RUN_EVENTS, onError, telemetry);
  const capacity = new QueueCapacity(backend);
  /** Priorities of events in failed calls. A retry must use the same ones, because the jobs may have been added. */
  const optionsByFailedEvent = new WeakMap<IdentifiedEvent, JobsOptions>();
  const optionsOf = (event: IdentifiedEvent) =>
    optionsByFailedEvent.get(event) ?? (burstLimiter.take(event.accountId) ? JOB_OPTIONS : LOW_PRIORITY);

  /** Set by the first call that the server forbids, so that others do not try. */
  let isAddOnlyUser = false;

  async function addBulk(queue: Queue<EventMessage>, jobs: NewJob<EventMessage>[]): Promise<RejectedJob[]> {
    const single = jobs.filter(({ name }) => name !== EVENT_BATCH);
    await capacity.require(queue);
    if (isAddOnlyUser) return await addAsAddOnlyUser(backend, queue, jobs);
    try {
      const [hasFailed, rejected] = await Promise.all([
        single.length > 0 && backend.hasFailed(queue),
        addJobs(backend, queue, jobs),
      ]);
      if (hasFailed) await replaceFailed(backend, queue, single);
      return rejected;
    } catch (error) {
      if (!backend.isForbidden(error)) throw error;
      isAddOnlyUser = true;
      return await addAsAddOnlyUser(backend, queue, jobs);
    }
  }

  /** Adds several events per job. The events of a rejected job get separate jobs, so that one invalid event rejects no other. */
  async function addShared(
    queue: Queue<EventMessage>,
    added: readonly PrioritizedEvent[],
  ): Promise<RejectedJob[]> {
    const jobs = batchIntoJobs(added);
    const rejected = await addBulk(queue, jobs);
    if (rejected.length === 0) return rejected;
    const ids = new Set(rejected.map(({ jobId }) => jobId));
    const events = new Set(jobs.filter((job) => ids.has(jobIdOf(job))).flatMap(eventsOf));
    const single = added.filter(({ event }) => events.has(event));
    return await addBulk(
      queue,
      single.map(({ event, options }) => createEventJob(event, options)),
    );
  }

  async function addBatched(events: readonly IdentifiedEvent[]): Promise<RejectedJob[]> {
    const added = events.map((event) => ({ event, accountId: event.accountId, options: optionsOf(event) }));
    const rejected: RejectedJob[] = [];
    try {
      await producer.callByShard(added, async (queue, shardItems) => {
        rejected.push(...(await addShared(queue, shardItems)));
      });
      return rejected;
    } catch (error) {
      for (const { event, options } of added) optionsByFailedEvent.set(event, options);
      throw error;
    }
  }

  async function addEach(
    events: readonly IdentifiedEvent[],
    traceContexts?: readonly (string | null)[],
  ): Promise<void> {
    const added = events.map((event, index) => ({
      event,
      accountId: event.accountId,
      metadata: traceContexts?.[index],
    }));
    const rejected: RejectedJob[] = [];
    for (const bulk of splitIntoBulks(added, ({ event }) => event))
      await producer.callByShard(bulk, async (queue, shardItems) => {
        const jobs = shardItems.map(({ event, metadata }) =>
          createEventJob(event, { ...optionsOf(event), ...(metadata && { telemetry: { metadata } }) }),
        );
        rejected.push(...(await addBulk(queue, jobs)));
      });
    throwIfRejected(rejected);
  }

  return {
    async add(events, traceContexts) {
      // A job can continue only one trace.
      if (telemetry !== undefined || events.length === 1) return await addEach(events, traceContexts);
      const rejected: RejectedJob[] = [];
      for (const bulk of splitIntoBulks(events, (event) => event)) rejected.push(...(await addBatched(bulk)));
      throwIfRejected(rejected);
    },
    addEach: (events) => addEach(events),
    async requeue(events) {
      await producer.callByShard(events, (queue, shardItems) =>
        backend.removeOrphans(
          queue,
          shardItems.flatMap((event) => [eventJobId(event), event.eventId]),
        ),
      );
      await addEach(events);
    },
    async peek(count) {
      const peeked = await producer.callEach(async (queue, shard) =>
        (await backend.peek(queue, count)).map((job) => ({ ...job, shard })),
      );
      if (peeked.length === 1) return peeked.flat();
      return peeked
        .flat()
        .sort((one, other) => one.timestamp - other.timestamp)
        .slice(0, count);
    },
    async discard(jobs) {
      for (const shard of new Set(jobs.map((job) => job.shard))) {
        const ids = jobs.filter((job) => job.shard === shard).map(({ id }) => id);
        await producer.call((queue) => backend.discard(queue, ids), shard);
      }
    },
    findQueued: (events) =>
      findQueuedOnAnyShard(producer, events, eventJobId, (queue, shardItems) =>
        queuedEvents(backend, queue, shardItems),
      ),
    sample: async (options) => mergeSamples(await producer.callEach((queue) => sampleEvents(queue, options))),
    async counts() {
      const { prioritized = 0, ...counts } = await countJobs(producer);
      return { ...counts, waiting: (counts.waiting ?? 0) + prioritized };
    },
    restoreSettings: async () => void (await producer.callEach((queue) => backend.restoreSettings(queue))),
    loadPublishFunction: () => producer.call((queue) => backend.loadPublishFunction(queue)),
    serverTimeMs: () =>
      producer.call(async (queue) => {
        try {
          return await backend.serverTimeMs(queue);
        } catch (error) {
          if (backend.isForbidden(error)) return null;
          throw error;
        }
      }),
    async findForeignPublishers() {
      const [first, ...others] = await producer.callEach(async (queue, shard) =>
        shard === 0
          ? await backend.findForeignPublishers(queue)
          : { foreignQueues: [], version: await backend.findForeignVersion(queue) },
      );
      const version = [first, ...others].find((one) => one && one.version !== null)?.version ?? null;
      return { foreignQueues: first?.foreignQueues ?? [], version };
    },
    nextJob: () => findLongestWaitingJob(producer),
    nextJobs: () => readNextJobs(producer),
    close: () => producer.close(),
  };
}

/**
 * Limits of a job with several events: enough of them to make the queue's cost per event small, few enough that they
 * are committed together and that a retried job repeats little. Bytes of the text as UTF-8: one event may have 524 KB.
 */
const BATCH_MAX = { events: 20, bytes: 32_768 };

/** An event and its priority in the queue. */
interface PrioritizedEvent {
  event: IdentifiedEvent;
  options: JobsOptions;
}

/** Groups events of the same priority into jobs, in their order and without duplicates. */
function batchIntoJobs(added: readonly PrioritizedEvent[]): NewJob<EventMessage>[] {
  const jobs: NewJob<EventMessage>[] = [];
  const openBatches = new Map<JobsOptions, { events: IdentifiedEvent[]; bytes: number }>();
  const seen = new Set<string>();
  for (const { event, options } of added) {
    if (seen.has(eventJobId(event))) continue;
    seen.add(eventJobId(event));
    const batch = openBatches.get(options) ?? { events: [], bytes: 0 };
    openBatches.set(options, batch);
    batch.events.push(event);
    batch.bytes += textBytesOf(event);
    if (batch.events.length < BATCH_MAX.events && batch.bytes < BATCH_MAX.bytes) continue;
    jobs.push(createBatchJob(batch.events, options));
    openBatches.delete(options);
  }
  for (const [options, batch] of openBatches) jobs.push(createBatchJob(batch.events, options));
  return jobs;
}

function eventsOf({ data }: NewJob<EventMessage>): readonly unknown[] {
  return batchedEvents(data) ?? [data];
}

function textBytesOf({ data, run_steps }: IdentifiedEvent): number {
  let bytes = run_steps === undefined ? 0 : stepsBytes(run_steps);
  for (const value of Object.values(data)) bytes += typeof value === 'string' ? Buffer.byteLength(value) : 0;
  return bytes;
}

/** Splits the items of a call, in order. The same input always gives the same bulk calls, and so the same jobs. */
function splitIntoBulks<Added>(added: readonly Added[], eventOf: (one: Added) => IdentifiedEvent): Added[][] {
  const bulks: Added[][] = [];
  let bytes = 0;
  for (const one of added) {
    const bulk = bulks.at(-1);
    bytes += textBytesOf(eventOf(one));
    if (bulk !== undefined && bulk.length < BULK_MAX.events && bytes <= BULK_MAX.bytes) bulk.push(one);
    else {
      bulks.push([one]);
      bytes = textBytesOf(eventOf(one));
    }
  }
  return bulks;
}

function createEventJob(event: IdentifiedEvent, options: JobsOptions): NewJob<EventMessage> {
  return { name: event.eventType, data: event, opts: { jobId: eventJobId(event), ...options } };
}

/** The same events make the same job id, so that repeating a call whose reply was lost adds nothing. */
function createBatchJob(events: IdentifiedEvent[], options: JobsOptions): NewJob<EventMessage> {
  const [first] = events;
  if (first !== undefined && events.length === 1) return createEventJob(first, options);
  const ids = events.map(eventJobId).join(' ');
  const jobId = `batch_${hash('sha256', ids, 'base64url')}`;
  return { name: EVENT_BATCH, data: { events }, opts: { jobId, ...options } };
}
