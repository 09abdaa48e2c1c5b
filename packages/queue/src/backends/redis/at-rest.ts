import type { Worker } from 'bullmq';
import { Cluster, type Redis } from 'ioredis';
import type { SharedClient } from './connection.ts';
import type { WaitingBackend } from './ending-waits.ts';

/*
 * Many shards must not cost much while nothing happens. Redis removes what is empty, so one EXISTS over the keys of all of them
 * answers for all of them, if they are on one server.
 */

/**
 * The same worker, which may wait for longer than its connection may be silent: it waits again. After each wait BullMQ looks for
 * jobs, with a script, which is the dearer half of it.
 */
export function withLongWaits<Data>(worker: Worker<Data>, atOnceSeconds: number): Worker<Data> {
  const backend = worker.getBackend() as unknown as WaitingBackend;
  const wait = backend.waitForJob.bind(backend);
  backend.waitForJob = async (seconds) => {
    const waits = Math.ceil(seconds / atOnceSeconds);
    for (let count = 1; ; count += 1) {
      const marker = await wait(seconds / waits);
      const isOver = count >= waits || worker.closing !== undefined || worker.isPaused();
      if (marker !== null || isOver) return marker;
    }
  };
  return worker;
}

/** Of each list of keys whether any is there. */
export async function existing(
  client: Redis | Cluster | null,
  lists: readonly (readonly string[])[],
): Promise<boolean[]> {
  if (client === null) return lists.map(() => true);
  const isApart = client instanceof Cluster || lists.length === 1;
  if (!isApart && (await client.exists(...lists.flat())) === 0) return lists.map(() => false);
  return await Promise.all(lists.map(async (keys) => (await client.exists(...keys)) > 0));
}

/** The workers of a process look for stalled jobs one by one; where no job is at work none can be stalled. */
export class ActiveJobs {
  readonly #shared: SharedClient;
  readonly #keys = new Set<string>();
  #looking: Promise<Set<string>> | null = null;

  constructor(shared: SharedClient) {
    this.#shared = shared;
  }

  /** The same worker, which looks only where there are jobs at work. */
  spared<Data>(worker: Worker<Data>): Worker<Data> {
    const backend = worker.getBackend();
    const key = worker.toKey('active');
    this.#keys.add(key);
    worker.on('closed', () => this.#keys.delete(key));
    const move = backend.moveStalledJobsToWait.bind(backend);
    backend.moveStalledJobsToWait = async () => ((await this.#look()).has(key) ? await move() : []);
    return worker;
  }

  /** Those who ask at the same time, as workers that were made together do, ask together. */
  #look(): Promise<Set<string>> {
    this.#looking ??= this.#present().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #present(): Promise<Set<string>> {
    const keys = [...this.#keys];
    const there = await existing(
      this.#shared.client,
      keys.map((key) => [key]),
    );
    return new Set(keys.filter((_, index) => there[index]));
  }
}
