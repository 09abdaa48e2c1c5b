import type { Lane } from './lanes.ts';

/** Deliveries that are simulated as one; `count` is 1 except in long trials. */
export interface Item {
  count: number;
  intendedMs: number;
  lane: Lane;
  attempts: number;
}

/** A queued job: events, or deliveries whose next attempt is due. */
export interface Job {
  kind: 'event' | 'retry';
  /** Number of BullMQ jobs: more than one if an item represents many. */
  jobs: number;
  events: number;
  items: Item[];
  addedMs: number;
}

/** A first-in, first-out queue that does not move the remaining elements. */
export class JobQueue {
  #jobs: Job[] = [];
  #head = 0;
  /** Number of BullMQ jobs. */
  jobs = 0;

  get length(): number {
    return this.#jobs.length - this.#head;
  }

  get first(): Job | undefined {
    return this.#jobs[this.#head];
  }

  push(job: Job): void {
    this.#jobs.push(job);
    this.jobs += job.jobs;
  }

  shift(): Job | undefined {
    const job = this.#jobs[this.#head];
    if (job === undefined) return undefined;
    this.#head += 1;
    this.jobs -= job.jobs;
    if (this.#head > 10_000) {
      this.#jobs = this.#jobs.slice(this.#head);
      this.#head = 0;
    }
    return job;
  }
}
