import type { EventBatch } from '@runhook/contract';
import type { Processor, Worker } from 'bullmq';
import { wakerOf } from '../patches/bullmq/wake-worker.ts';

/** What the workers of a gate may have fetched and not begun: so many things, as each job brings one or several. */
const UNBEGUN_MAX = 48;
/** How much of what a job brings tells of the next one. */
const LATEST_SHARE = 1 / 8;

/** The items of jobs, several of one job, that wait in the process. */
export interface Backlog {
  /** While it is saturated, no job is fetched. */
  readonly isSaturated: boolean;
  /** Set by the gate: must be called when it is not saturated any longer. */
  onCapacity: () => void;
}

/**
 * One bound on what several workers have begun, those of the shards of a queue. While it is reached, a place that becomes
 * free goes to the worker that has begun least: a shard with a million jobs leaves to one with ten what those need.
 */
export class Gate {
  readonly concurrency: number;
  readonly #doors = new Set<Door>();
  readonly #backlog: Backlog | undefined;
  #begun = 0;
  /** Things that a job brings, as the latest have. */
  #broughtByOne = 1;

  constructor(concurrency: number, backlog?: Backlog) {
    this.concurrency = concurrency;
    this.#backlog = backlog;
    if (backlog) backlog.onCapacity = () => this.#fetchAgain();
  }

  #fetchAgain(): void {
    for (const door of this.#doors) door.fetchAgain();
  }

  /** For another worker. */
  door(): Door {
    const door = new Door(this);
    this.#doors.add(door);
    return door;
  }

  /** Passes at once, or with the promise. */
  enter(door: Door): Promise<void> | undefined {
    if (this.#begun >= this.concurrency) return new Promise((resolve) => door.waiting.push(resolve));
    this.#begin(door);
    return undefined;
  }

  /** To be told what each job brings. */
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
    // Of those that have begun as much, the others come first at the next one.
    this.#doors.delete(next);
    this.#doors.add(next);
    admit();
  }

  forget(door: Door): void {
    this.#doors.delete(door);
  }

  /** How many jobs the worker behind a door may have. */
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

/** Of one worker. */
class Door {
  readonly #gate: Gate;
  /** Jobs that its worker is at. */
  begun = 0;
  /** Of jobs that it has fetched. */
  readonly waiting: (() => void)[] = [];
  /** Set by whoever fetches. */
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
 * BullMQ's worker fetches one job after another and begins none of them until it has as many as its `concurrency`, or the
 * queue has no more: the first of hundreds would wait for the last to be fetched. So it may have some more than it has begun.
 * @param create makes the worker, with the concurrency that it has at first
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
