import { retryDelayMs } from '@runhook/dispatcher/retry-schedule';
import { Batcher } from './batcher.ts';
import type { Item, Job } from './jobs.ts';
import type { Lane } from './lanes.ts';
import type { Service } from './service.ts';
import { type Cores, Semaphore, Thread } from './stations.ts';

/** Modelled on the values in services/dispatcher/src/record/batches.ts. */
const BATCH_SIZE_MAX = 200;
const SPACING_MS = { load_event_states: 2, commit_attempted: 15, load_deliveries: 5, record_attempts: 10 };
/** Modelled on the values in services/dispatcher/src/policy/events-in-flight.ts. */
const EVENT_SLOTS = 128;
const SATURATED_AT = 64;
/**
 * A slower delivery is committed as pending, and its attempt is recorded when it has ended: after half a second, or
 * earlier while other events wait for slots (services/dispatcher/src/fan-out.ts).
 */
const COMMIT_AFTER_MS = 500;
const URGENT_COMMIT_AFTER_MS = 50;
/** Share of a job's queue cost for adding it; the rest is for taking and ending it. */
export const ADDING_SHARE = 0.4;
/** Share of the cost of a request for rendering, signing and writing it; the rest is for reading the response. */
const SENDING_SHARE = 0.6;

interface Rows {
  count: number;
  micros: number;
  walBytes: number;
  done: () => void;
}

/** A dispatcher: an event loop with its jobs in flight and its batches. */
export class Pod {
  readonly thread: Thread;
  readonly createdMs: number;
  readonly #service: Service;
  readonly #inFlight = { event: 0, retry: 0 };
  /** Slots for events. */
  readonly #slots: Semaphore;
  readonly #batchers: Record<keyof typeof SPACING_MS, Batcher<Rows>>;
  /** Shards and kinds of jobs that are being fetched: at most one fetch of each. */
  readonly #fetching = new Set<string>();
  #nextShard: number;
  #isStopped = false;

  constructor(service: Service, index: number, cores: Cores) {
    const { iterationMicros, wakeMicros, helperShare, pauseShare } = service.times.dispatcher;
    const { unevenness, coldHalfMs, pauseMs } = service.times.machine;
    const pauses = { share: pauseShare, ms: pauseMs };
    this.#service = service;
    this.#slots = new Semaphore(service.simulation, Math.min(EVENT_SLOTS, service.setup.concurrency));
    this.#nextShard = index;
    this.createdMs = service.simulation.nowMs;
    this.thread = new Thread(service.simulation, {
      ...{ cores, iterationMicros, wakeMicros, coldHalfMs, helperShare, pauses, unevenness },
    });
    this.#batchers = Object.fromEntries(
      Object.entries(SPACING_MS).map(([name, spacingMs]) => [name, this.#batcher(spacingMs)]),
    ) as Record<keyof typeof SPACING_MS, Batcher<Rows>>;
    for (let shard = 0; shard < service.setup.shards; shard += 1) {
      this.wake(shard, 'event');
      this.wake(shard, 'retry');
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Time for which the slots for events were used, as a share of all slots. */
  get slotsUsedMs(): number {
    return this.#slots.usedMs / this.#slots.size;
  }

  /** Starts a fetch from the shard; returns whether it did. */
  wake(shard: number, kind: Job['kind']): boolean {
    if (this.#isFull(kind)) return false;
    const key = `${kind} ${shard}`;
    if (this.#fetching.has(key)) return false;
    this.#fetching.add(key);
    this.#fetch(shard, kind, () => {
      this.#fetching.delete(key);
      if (this.#service.hasWaiting(shard, kind)) this.wake(shard, kind);
    });
    return true;
  }

  #isFull(kind: Job['kind']): boolean {
    if (this.#isStopped || this.#inFlight[kind] >= this.#service.setup.concurrency) return true;
    return kind === 'event' && this.#slots.waiting >= SATURATED_AT;
  }

  #fetch(shard: number, kind: Job['kind'], onFetched: () => void): void {
    const job = this.#service.take(shard, kind);
    if (job === undefined) {
      onFetched();
      return;
    }
    const { redis, dispatcher } = this.#service.times;
    const redisMicros = (redis.jobMicros * job.jobs + redis.eventMicros * job.events) * (1 - ADDING_SHARE);
    this.#inFlight[kind] += job.jobs;
    this.#service.redisWork(shard, redisMicros, () =>
      this.thread.run(dispatcher.jobMicros * job.jobs + dispatcher.eventMicros * job.events, () => {
        onFetched();
        const onEnd = () => this.#onJobEnd(job);
        if (kind === 'event') this.#fanOut(job, onEnd);
        else this.#retry(job, onEnd);
      }),
    );
  }

  /** A worker that ends a job takes the next one in the same call, from the next shard that has one. */
  #onJobEnd(job: Job): void {
    const { shards } = this.#service.setup;
    this.#inFlight[job.kind] -= job.jobs;
    for (let index = 0; index < shards && !this.#isFull(job.kind); index += 1) {
      const shard = this.#nextShard++ % shards;
      if (!this.#service.hasWaiting(shard, job.kind)) continue;
      this.#fetch(shard, job.kind, () => undefined);
      return;
    }
  }

  /** Processes the events of a job individually, as slots become free. */
  #fanOut(job: Job, onEnd: () => void): void {
    const deliveriesPerEvent = this.#service.setup.deliveriesPerEvent;
    let pending = Math.ceil(job.items.length / deliveriesPerEvent);
    for (let start = 0; start < job.items.length; start += deliveriesPerEvent) {
      const items = job.items.slice(start, start + deliveriesPerEvent);
      const [{ count }] = items as [Item];
      this.#slots.acquire(count, () =>
        this.#fanOutEvent(
          items,
          count,
          () => this.#releaseSlots(count),
          () => {
            pending -= 1;
            if (pending === 0) onEnd();
          },
        ),
      );
    }
  }

  /** Releases slots, and fetches again if the waiting events prevented it. */
  #releaseSlots(count: number): void {
    const wasSaturated = this.#slots.waiting >= SATURATED_AT;
    this.#slots.release(count);
    if (!wasSaturated || this.#isFull('event')) return;
    for (let shard = 0; shard < this.#service.setup.shards; shard += 1)
      if (this.#service.hasWaiting(shard, 'event')) this.wake(shard, 'event');
  }

  /** @param count number of events that the item represents */
  #fanOutEvent(items: readonly Item[], count: number, onCommitted: () => void, onEnd: () => void): void {
    const { stateRowMicros, eventRowMicros, deliveryRowMicros, retryRowMicros, walBytes } =
      this.#service.times.postgres;
    const { simulation } = this.#service;
    const deliveries = count * items.length;
    this.#write('load_event_states', { count, micros: stateRowMicros * count, walBytes: 0 }, () => {
      const beganMs = simulation.nowMs;
      let pending = items.length;
      let isCommitting = false;
      let isCommitted = false;
      let lateCount = 0;
      const failed: Item[] = [];
      const end = () => {
        if (!isCommitted || pending > 0) return;
        for (const item of failed.splice(0)) this.#scheduleRetry(item);
        if (lateCount === 0) {
          onEnd();
          return;
        }
        const late = { count: lateCount, micros: (retryRowMicros * lateCount) / 2, walBytes: 0 };
        this.#write('record_attempts', late, onEnd);
      };
      const commit = () => {
        if (isCommitting) return;
        isCommitting = true;
        const micros = eventRowMicros * count + deliveryRowMicros * deliveries;
        this.#write('commit_attempted', { count, micros, walBytes: (walBytes * deliveries) / 2 }, () => {
          isCommitted = true;
          onCommitted();
          end();
        });
      };
      const commitWhenDue = () => {
        if (isCommitting) return;
        if (simulation.nowMs - beganMs >= COMMIT_AFTER_MS || this.#slots.waiting > 0) commit();
        else simulation.after(URGENT_COMMIT_AFTER_MS, commitWhenDue);
      };
      simulation.after(URGENT_COMMIT_AFTER_MS, commitWhenDue);
      for (const item of items) {
        this.#attempt(item, (succeeded) => {
          pending -= 1;
          if (!succeeded) failed.push(item);
          if (isCommitting) lateCount += item.count;
          if (pending === 0) commit();
          end();
        });
      }
    });
  }

  #retry(job: Job, onEnd: () => void): void {
    const { retryRowMicros, walBytes } = this.#service.times.postgres;
    const [item] = job.items as [Item];
    const rows = { count: item.count, micros: (retryRowMicros * item.count) / 2 };
    this.#write('load_deliveries', { ...rows, walBytes: 0 }, () =>
      this.#attempt(item, (succeeded) =>
        this.#write('record_attempts', { ...rows, walBytes: (walBytes * item.count) / 2 }, () => {
          if (!succeeded) this.#scheduleRetry(item);
          onEnd();
        }),
      ),
    );
  }

  /** A failed delivery waits for its next attempt; one without an attempt waits for its lane. */
  #scheduleRetry(item: Item): void {
    const { simulation, setup } = this.#service;
    if (item.attempts === 0) {
      item.lane.defer(item);
      return;
    }
    const progress = { cycle: 0, attemptCount: item.attempts };
    const delayMs = retryDelayMs(setup.retry, progress, simulation.random.next());
    if (delayMs === null) return;
    simulation.after(delayMs, () => {
      const shard = simulation.random.below(setup.shards);
      const job: Job = { kind: 'retry', jobs: item.count, events: 0, items: [item], addedMs: 0 };
      this.#service.enqueue(job, shard);
    });
  }

  #attempt(item: Item, onEnd: (succeeded: boolean) => void): void {
    const { simulation, times, setup } = this.#service;
    const { lane, count } = item;
    if (lane.isClosed(simulation.nowMs)) {
      item.attempts = 0;
      onEnd(false);
      return;
    }
    item.attempts += 1;
    lane.begin(count, simulation.nowMs);
    const succeeds = lane.health === 'responds' && simulation.random.next() >= setup.failureShare;
    this.#request(lane, count, succeeds ? () => this.#service.recordArrival(item) : undefined, () =>
      this.thread.run(times.dispatcher.deliveryMicros * (1 - SENDING_SHARE) * count, () => {
        lane.end(count, succeeds, simulation.nowMs);
        onEnd(succeeds);
      }),
    );
  }

  #request(lane: Lane, count: number, arrived: (() => void) | undefined, onResponse: () => void): void {
    const { simulation, times, setup } = this.#service;
    const { p50Ms, p99Ms } = setup.responseTime;
    this.thread.run(times.dispatcher.deliveryMicros * SENDING_SHARE * count, () =>
      simulation.after(this.#service.networkMs, () =>
        this.#service.runOnLoadThread('receiver', times.machine.receiverMicros * count, () => {
          arrived?.();
          const takesMs = {
            rejects: () => 0,
            hangs: () => setup.timeoutMs,
            responds: () => Math.min(simulation.random.logNormal(p50Ms, p99Ms), setup.timeoutMs),
          };
          simulation.after(takesMs[lane.health](), onResponse);
        }),
      ),
    );
  }

  /** The job of a lane: reads deferred deliveries, attempts them concurrently, and records the results. */
  drain(lane: Lane, count: number, onEnd: (succeeded: boolean) => void): void {
    const { postgres, dispatcher } = this.#service.times;
    const rows = { count, micros: (postgres.retryRowMicros * count) / 2 };
    const succeeds = () => lane.health === 'responds';
    this.#write('load_deliveries', { ...rows, walBytes: 0 }, () =>
      this.#request(lane, count, undefined, () =>
        this.thread.run(dispatcher.deliveryMicros * (1 - SENDING_SHARE) * count, () =>
          this.#write('record_attempts', { ...rows, walBytes: (postgres.walBytes * count) / 2 }, () =>
            onEnd(succeeds()),
          ),
        ),
      ),
    );
  }

  #write(name: keyof typeof SPACING_MS, rows: Omit<Rows, 'done'>, done: () => void): void {
    this.#batchers[name].add({ ...rows, done });
  }

  #batcher(spacingMs: number): Batcher<Rows> {
    const { simulation, times } = this.#service;
    return new Batcher<Rows>(simulation, {
      sizeMax: BATCH_SIZE_MAX,
      sizeOf: ({ count }) => count,
      slots: 1,
      spacingMs,
      run: (batch, done) =>
        this.thread.run(times.dispatcher.batchMicros, () => {
          const micros = batch.reduce((sum, rows) => sum + rows.micros, 0);
          const walBytes = batch.reduce((sum, rows) => sum + rows.walBytes, 0);
          this.#service.statement(micros, walBytes, () =>
            this.thread.run(0, () => {
              done();
              for (const rows of batch) rows.done();
            }),
          );
        }),
    });
  }
}
