import type { Lane } from './lanes.ts';

/** Deliveries that go the same way at the same time; one, or in a long trial many. */
export interface Item {
  count: number;
  intendedMs: number;
  lane: Lane;
  attempts: number;
}

/** In line: events, or deliveries whose next attempt is due. */
export interface Job {
  kind: 'event' | 'retry';
  /** BullMQ's: more than one when an item stands for many. */
  jobs: number;
  events: number;
  items: Item[];
  addedMs: number;
}

/** First in, first out, without moving what is behind. */
export class Line {
  #jobs: Job[] = [];
  #head = 0;
  /** BullMQ's. */
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
