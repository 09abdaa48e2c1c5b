import { SHARDS_MAX, type ShardMap, shardsInUse } from '@runhook/contract';
import type { Worker } from 'bullmq';
import { type Backlog, SharedConcurrency } from './backends/shared-concurrency.ts';

export interface ShardWorkersOptions {
  name: string;
  /** Maximum number of started jobs of all workers together. */
  concurrency: number;
  /** Items of fetched jobs that wait in the process. */
  backlog?: Backlog | undefined;
  /** Shards that this process serves, if they are in use; all when omitted. */
  served?: readonly number[] | undefined;
  create: (shard: number, sharedConcurrency: SharedConcurrency) => Worker;
  onError: (error: unknown) => void;
}

/** The workers of a queue in this process: one for each shard that it serves, opened and closed as the map changes. */
export class ShardWorkers {
  readonly name: string;
  readonly #options: ShardWorkersOptions;
  readonly #sharedConcurrency: SharedConcurrency;
  readonly #workers = new Map<number, Worker>();
  /** Closing workers, which finish their current jobs. */
  readonly #closing = new Set<Promise<void>>();
  #isPaused = false;
  #isClosed = false;

  constructor(options: ShardWorkersOptions) {
    this.name = options.name;
    this.#options = options;
    this.#sharedConcurrency = new SharedConcurrency(options.concurrency, options.backlog);
  }

  /** Workers by shard. */
  get workers(): ReadonlyMap<number, Worker> {
    return this.#workers;
  }

  follow(map: ShardMap): void {
    if (this.#isClosed) return;
    const { served, create } = this.#options;
    const shards = new Set(shardsInUse(map).filter((shard) => served?.includes(shard) ?? true));
    for (const [shard, worker] of this.#workers) if (!shards.has(shard)) this.#end(shard, worker);
    for (const shard of shards) {
      if (this.#workers.has(shard)) continue;
      const worker = create(shard, this.#sharedConcurrency);
      this.#workers.set(shard, worker);
      if (this.#isPaused) worker.pause(true).catch(this.#options.onError);
    }
  }

  isRunning(): boolean {
    return [...this.#workers.values()].every((worker) => worker.isRunning());
  }

  isPaused(): boolean {
    return this.#isPaused;
  }

  /** Stops taking jobs; current jobs continue. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await Promise.all(Array.from(this.#workers.values(), (worker) => worker.pause(true)));
  }

  async resume(): Promise<void> {
    this.#isPaused = false;
    await Promise.all(Array.from(this.#workers.values(), (worker) => worker.resume()));
  }

  /** Closes the workers once their current jobs have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const [shard, worker] of this.#workers) this.#end(shard, worker);
    await Promise.all(this.#closing);
  }

  #end(shard: number, worker: Worker): void {
    this.#workers.delete(shard);
    const closed = worker
      .close()
      .catch(this.#options.onError)
      .finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}

/**
 * Parses the shards that a process serves: `0-7`, or `0,3,5-6`.
 * @throws TypeError that describes the problem without any part of the text
 */
export function parseShards(text: string): number[] {
  const shards = new Set<number>();
  for (const part of text.split(',')) {
    const [, from = '', to = from] = /^\s*(\d{1,3})(?:-(\d{1,3}))?\s*$/.exec(part) ?? [];
    if (from === '') throw new TypeError('shards are named as 0-7 or 0,3,5-6');
    if (Number(from) > Number(to)) throw new TypeError('a range of shards begins with its lower number');
    if (Number(to) >= SHARDS_MAX) throw new TypeError(`the highest shard is ${SHARDS_MAX - 1}`);
    for (let shard = Number(from); shard <= Number(to); shard += 1) shards.add(shard);
  }
  return [...shards].sort((one, other) => one - other);
}
