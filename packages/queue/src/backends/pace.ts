import type { EventBatch } from '@runhook/contract';
import type { Processor, Worker } from 'bullmq';
import { wakerOf } from '../patches/bullmq/wake-worker.ts';

/** Maximum number of items (events of a job) that the workers of a gate may have fetched and not started. */
const UNBEGUN_MAX = 48;
/** Weight of the latest job in the moving average of items per job. */
const LATEST_SHARE = 1 / 8;

/** Items of fetched jobs that wait in the process. */
export interface Backlog {
  /** While true, no further job is fetched. */
  readonly isSaturated: boolean;
  /** Set by the gate; the backlog must call it when it is no longer saturated. */
  onCapacity: () => void;
}

/**
 * Limits the started jobs of several workers together, those of the shards of a queue. At the limit, a released slot
 * goes to the waiting worker with the fewest started jobs, so that a shard with a million jobs does not starve one with
 * ten.
 */
export class Gate {
  readonly concurrency: number;
  readonly #doors = new Set<Door>();
  readonly #backlog: Backlog | undefined;
  #begun = 0;
  /** Moving average of items per job. */
  #broughtByOne = 1;

  constructor(concurrency: number, backlog?: Backlog) {
    this.concurrency = concurrency;
    this.#backlog = backlog;
    if (backlog) backlog.onCapacity = () => this.#fetchAgain();
  }

  #fetchAgain(): void {
    for (const door of this.#doors) door.fetchAgain();
  }

  /** Registers another worker. */
  door(): Door {
    const door = new Door(this);
    this.#doors.add(door);
    return door;
  }

  /** Takes a slot. Returns undefined if one was free, otherwise a promise that resolves when one is assigned. */
  enter(door: Door): Promise<void> | undefined {
    if (this.#begun >= this.concurrency) return new Promise((resolve) => door.waiting.push(resolve));
    this.#begin(door);
    return undefined;
  }

  /** Must be called with the number of items of each started job. */
  brought(things: number): void {
    this.#broughtByOne += (things - this.#broughtByOne) * LATEST_SHARE;
  }

  leave(door: Door): void {
    this.#begun -= 1;
    door.begun -= 1;
    let next: Door | null = null;
    for (const other of this.#doors)
      if (other.waiting.length > 0 && (next === null || other.begun < next.begun)) next = other;
    const admit = next?.waiting.shift();
    if (next === null || admit === undefined) return;
    this.#begin(next);
    // Moves the worker to the end, so that others with the same number of jobs precede it next time.
    this.#doors.delete(next);
    this.#doors.add(next);
    admit();
  }

  forget(door: Door): void {
    this.#doors.delete(door);
  }

  /** Returns the number of jobs that a worker may have fetched, started ones included. */
  allowance(door: Door): number {
    if (this.#backlog?.isSaturated) return Math.max(1, door.begun);
    let busy = 1;
    for (const other of this.#doors) if (other !== door && other.begun + other.waiting.length > 0) busy += 1;
    const unbegun = Math.round(UNBEGUN_MAX / busy / this.#broughtByOne);
    return Math.min(this.concurrency, door.begun + Math.max(1, unbegun));
  }

  #begin(door: Door): void {
    this.#begun += 1;
    door.begun += 1;
  }
}

/** Slot accounting of one worker. */
class Door {
  readonly #gate: Gate;
  /** Number of its started jobs. */
  begun = 0;
  /** Resolvers of fetched jobs that wait for a slot. */
  readonly waiting: (() => void)[] = [];
  /** Makes the worker fetch again; set by {@link createPaced}. */
  fetchAgain: () => void = () => {};

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  enter = () => this.#gate.enter(this);
  leave = () => this.#gate.leave(this);
  close = () => this.#gate.forget(this);
  allowance = () => this.#gate.allowance(this);
}

function thingsOf(data: unknown): number {
  const { events } = (data ?? {}) as Partial<EventBatch>;
  return Array.isArray(events) ? events.length : 1;
}

/**
 * Creates a worker that may fetch only a few more jobs than it has started. BullMQ's worker starts no job until it has
 * fetched as many as its `concurrency` or the queue is empty, so the first of hundreds would wait until the last is
 * fetched.
 * @param create makes the worker with its initial concurrency
 */
export function createPaced<Data>(
  gate: Gate,
  process: Processor<Data>,
  create: (paced: Processor<Data>, concurrency: number) => Worker<Data>,
): Worker<Data> {
  const door = gate.door();
  const pace = () => {
    worker.concurrency = door.allowance();
  };
  const paced: Processor<Data> = async (job, token) => {
    const entering = door.enter();
    if (entering) await entering;
    gate.brought(thingsOf(job.data));
    pace();
    try {
      return await process(job, token);
    } finally {
      door.leave();
      pace();
    }
  };
  const worker = create(paced, door.allowance());
  worker.on('closed', door.close);
  const wake = wakerOf(worker);
  door.fetchAgain = () => {
    pace();
    wake();
  };
  return worker;
}
