import { ONE_SHARD, type ShardMap } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { ShardStore } from './backends/backend.ts';

const LOOK_EVERY_MS = 1_000;
/**
 * Nothing is added by a map that was seen so long ago. With the time of a call, less than a shard that is emptied is served
 * after it was left ({@link DRAINED_AFTER_MS}).
 */
const KNOWN_FOR_MS = 20_000;
/** Nobody adds to a shard any more that no slot has pointed to for so long, unless a process was halted meanwhile. */
export const DRAINED_AFTER_MS = 60_000;

/** The map of shards as a process knows it. Its version is looked at once a second while somebody asks for it. */
export class ShardMaps {
  readonly store: ShardStore | null;
  #known: ShardMap = ONE_SHARD;
  #knownAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<ShardMap> | null = null;

  constructor(store: ShardStore | null) {
    this.store = store;
  }

  /** As it was at the last look. */
  get known(): ShardMap {
    return this.#known;
  }

  /** The map to add jobs by, without waiting when it was seen lately; null when it has to be asked for. */
  lately(queueOf: () => Promise<Queue>): ShardMap | null {
    if (this.store === null) return this.#known;
    const nowMs = performance.now();
    if (nowMs - this.#knownAtMs >= KNOWN_FOR_MS) return null;
    // Whoever adds goes on meanwhile, and a server that is away is told of by what cannot be added.
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = nowMs;
      queueOf()
        .then((queue) => this.look(queue))
        .catch(() => undefined);
    }
    return this.#known;
  }

  /** Asks now, together with those who ask at the same time. @param queue of shard 0 */
  look(queue: Queue): Promise<ShardMap> {
    this.#looking ??= this.#look(queue).finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(queue: Queue): Promise<ShardMap> {
    if (this.store === null) return this.#known;
    const nowMs = performance.now();
    this.#lookedAtMs = nowMs;
    this.#known = await this.store.readIfChanged(queue, this.#known);
    this.#knownAtMs = nowMs;
    return this.#known;
  }
}
