import type { EventBatch } from '@runhook/contract';
import type { Processor, Worker } from 'bullmq';
import { createWaker } from '../patches/bullmq/wake-worker.ts';

/**
 * Number of items (events of a job) that the workers of a {@link SharedConcurrency} may have fetched and not started,
 * by the mean size of a job; each worker may fetch one job in any case.
 */
const FETCHED_AHEAD_MAX = 48;
/** Weight of the latest job in the moving average of items per job. */
const SMOOTHING_FACTOR = 1 / 8;

/** Items (events of jobs) that were fetched and wait in the process. */
export interface Backlog {
  /** While true, a worker that has started a job fetches no further one. */
  readonly isSaturated: boolean;
  /** Set by {@link SharedConcurrency}; the backlog must call it when it is no longer saturated. */
  onCapacity: () => void;
}

/**
 * Limits the started jobs of several workers together, those of the shards of a queue. At the limit, a released slot
 * goes to the waiting worker with the fewest started jobs, so that a shard with a million jobs does not starve one with
 * ten.
 */
export class SharedConcurrency {
  readonly concurrency: number;
  readonly #slots = new Set<WorkerSlot>();
  readonly #backlog: Backlog | undefined;
  #activeCount = 0;
  /** Moving average of items per job. */
  #meanBatchSize = 1;

  constructor(concurrency: number, backlog?: Backlog) {
    this.concurrency = concurrency;
    this.#backlog = backlog;
    if (backlog) backlog.onCapacity = () => this.#resumeFetching();
  }

  #resumeFetching(): void {
    for (const workerSlot of this.#slots) workerSlot.resumeFetching();
  }

  /** Registers another worker. */
  addWorker(): WorkerSlot {
    const workerSlot = new WorkerSlot(this);
    this.#slots.add(workerSlot);
    return workerSlot;
  }

  /** Takes a slot. Returns undefined if one was free, otherwise a promise that resolves when one is assigned. */
  acquire(workerSlot: WorkerSlot): Promise<void> | undefined {
    if (this.#activeCount >= this.concurrency)
      return new Promise((resolve) => workerSlot.waiting.push(resolve));
    this.#start(workerSlot);
    return undefined;
  }

  /** Must be called with the number of items of each started job. */
  noteBatchSize(size: number): void {
    this.#meanBatchSize += (size - this.#meanBatchSize) * SMOOTHING_FACTOR;
  }

  release(workerSlot: WorkerSlot): void {
    this.#activeCount -= 1;
    workerSlot.activeCount -= 1;
    let next: WorkerSlot | null = null;
    for (const other of this.#slots)
      if (other.waiting.length > 0 && (next === null || other.activeCount < next.activeCount)) next = other;
    const admit = next?.waiting.shift();
    if (next === null || admit === undefined) return;
    this.#start(next);
    // Moves the worker to the end, so that others with the same number of jobs precede it next time.
    this.#slots.delete(next);
    this.#slots.add(next);
    admit();
  }

  remove(workerSlot: WorkerSlot): void {
    this.#slots.delete(workerSlot);
  }

  /** Returns the number of jobs that a worker may have fetched, started ones included. */
  allowance(workerSlot: WorkerSlot): number {
    if (this.#backlog?.isSaturated) return Math.max(1, workerSlot.activeCount);
    let busy = 1;
    for (const other of this.#slots)
      if (other !== workerSlot && other.activeCount + other.waiting.length > 0) busy += 1;
    const fetchedAhead = Math.round(FETCHED_AHEAD_MAX / busy / this.#meanBatchSize);
    return Math.min(this.concurrency, workerSlot.activeCount + Math.max(1, fetchedAhead));
  }

  #start(workerSlot: WorkerSlot): void {
    this.#activeCount += 1;
    workerSlot.activeCount += 1;
  }
}

/** Slot accounting of one worker. */
class WorkerSlot {
  readonly #sharedConcurrency: SharedConcurrency;
  /** Number of started jobs of the worker. */
  activeCount = 0;
  /** Resolvers of fetched jobs that wait for a slot. */
  readonly waiting: (() => void)[] = [];
  /** Makes the worker fetch again; set by {@link createPacedWorker}. */
  resumeFetching: () => void = () => {};

  constructor(sharedConcurrency: SharedConcurrency) {
    this.#sharedConcurrency = sharedConcurrency;
  }

  acquire = () => this.#sharedConcurrency.acquire(this);
  release = () => this.#sharedConcurrency.release(this);
  close = () => this.#sharedConcurrency.remove(this);
  allowance = () => this.#sharedConcurrency.allowance(this);
}

function batchSizeOf(data: unknown): number {
  const { events } = (data ?? {}) as Partial<EventBatch>;
  return Array.isArray(events) ? events.length : 1;
}

/**
 * Creates a worker that may fetch only a few more jobs than it has started. BullMQ's worker starts no job until it has
 * fetched as many as its `concurrency` or the queue is empty, so the first of hundreds would wait until the last is
 * fetched.
 * @param create creates the BullMQ worker with an initial concurrency, which is updated from then on
 */
export function createPacedWorker<Data>(
  sharedConcurrency: SharedConcurrency,
  process: Processor<Data>,
  create: (paced: Processor<Data>, concurrency: number) => Worker<Data>,
): Worker<Data> {
  const slot = sharedConcurrency.addWorker();
  const updateConcurrency = () => {
    worker.concurrency = slot.allowance();
  };
  const paced: Processor<Data> = async (job, token) => {
    const acquired = slot.acquire();
    if (acquired) await acquired;
    sharedConcurrency.noteBatchSize(batchSizeOf(job.data));
    updateConcurrency();
    try {
      return await process(job, token);
    } finally {
      slot.release();
      updateConcurrency();
    }
  };
  const worker = create(paced, slot.allowance());
  worker.on('closed', slot.close);
  const wake = createWaker(worker);
  slot.resumeFetching = () => {
    updateConcurrency();
    wake();
  };
  return worker;
}
