import { ONE_SHARD, type ShardMap } from '@runhook/contract';
import type { Queue } from 'bullmq';
import type { ShardStore } from './backends/backend.ts';

const CHECK_EVERY_MS = 1_000;
/**
 * Maximum age of a map by which jobs are added. Together with the timeout of a call, it is less than the time for which
 * a draining shard is served ({@link DRAINED_AFTER_MS}).
 */
const CACHED_FOR_MS = 20_000;
/** Time without slots after which no process adds to a shard, unless the process was halted meanwhile. */
export const DRAINED_AFTER_MS = 60_000;

/** Caches the shard map of a process. Checks its version once a second while the map is in use. */
export class ShardMaps {
  readonly store: ShardStore | null;
  #cachedMap: ShardMap = ONE_SHARD;
  #cachedAtMs = Number.NEGATIVE_INFINITY;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<ShardMap> | null = null;

  constructor(store: ShardStore | null) {
    this.store = store;
  }

  /** The map as of the last check. */
  get cached(): ShardMap {
    return this.#cachedMap;
  }

  /** Returns the cached map if it is recent, and refreshes it in the background; null when it must be read first. */
  recentMap(openQueue: () => Promise<Queue>): ShardMap | null {
    if (this.store === null) return this.#cachedMap;
    const nowMs = performance.now();
    if (nowMs - this.#cachedAtMs >= CACHED_FOR_MS) return null;
    // Errors are ignored: adding jobs fails too if the server is unavailable.
    if (nowMs - this.#checkedAtMs >= CHECK_EVERY_MS) {
      this.#checkedAtMs = nowMs;
      openQueue()
        .then((queue) => this.refresh(queue))
        .catch(() => undefined);
    }
    return this.#cachedMap;
  }

  /** Reads the map now; concurrent calls share one read. @param queue of shard 0 */
  refresh(queue: Queue): Promise<ShardMap> {
    this.#refreshing ??= this.#readChanges(queue).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #readChanges(queue: Queue): Promise<ShardMap> {
    if (this.store === null) return this.#cachedMap;
    const nowMs = performance.now();
    this.#checkedAtMs = nowMs;
    this.#cachedMap = await this.store.readIfChanged(queue, this.#cachedMap);
    this.#cachedAtMs = nowMs;
    return this.#cachedMap;
  }
}
