import { ONE_SHARD, type ShardMap } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { ShardStore } from './backends/backend.ts';

const LOOK_EVERY_MS = 1_000;
/**
 * Maximum age of a map by which jobs are added. Together with the timeout of a call, it is less than the time for which
 * a draining shard is served ({@link DRAINED_AFTER_MS}).
 */
const KNOWN_FOR_MS = 20_000;
/** Time without slots after which no process adds to a shard, unless the process was halted meanwhile. */
export const DRAINED_AFTER_MS = 60_000;

/** Caches the shard map of a process. Checks its version once a second while the map is in use. */
export class ShardMaps {
  readonly store: ShardStore | null;
  #known: ShardMap = ONE_SHARD;
  #knownAtMs = Number.NEGATIVE_INFINITY;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<ShardMap> | null = null;

  constructor(store: ShardStore | null) {
    this.store = store;
  }

  /** The map as of the last check. */
  get known(): ShardMap {
    return this.#known;
  }

  /** Returns the cached map if it is recent, and refreshes it in the background; null when it must be read first. */
  lately(queueOf: () => Promise<Queue>): ShardMap | null {
    if (this.store === null) return this.#known;
    const nowMs = performance.now();
    if (nowMs - this.#knownAtMs >= KNOWN_FOR_MS) return null;
    // Errors are ignored: adding jobs fails too if the server is unavailable.
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = nowMs;
      queueOf()
        .then((queue) => this.look(queue))
        .catch(() => undefined);
    }
    return this.#known;
  }

  /** Reads the map now; concurrent calls share one read. @param queue of shard 0 */
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
