import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';

/** Memory of the counts, by `approximateBytes`. */
const BYTES_MAX = 32 * 1_024 * 1_024;
const FRESH_MS = 60_000;
const USABLE_MS = 10 * 60_000;
/** Maximum share of the time that counting may take. */
const SHARE = 0.01;

interface Kept<Counts> {
  counts: Counts;
  countedAtMs: number;
  tookMs: number;
}

/**
 * Caches counts of long logs in memory for minutes, or for longer if counting takes long, and refreshes them in the
 * background.
 */
export class KeptCounts<Counts extends object> {
  readonly #kept: LRUCache<string, Kept<Counts>>;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(bytesMax = BYTES_MAX) {
    this.#kept = new LRUCache<string, Kept<Counts>>({ maxSize: bytesMax, sizeCalculation: approximateBytes });
  }

  /** Returns null if there are no counts or they are too old. */
  usable(key: string): Counts | null {
    const kept = this.#kept.get(key);
    return kept === undefined || isOlder(kept, USABLE_MS) ? null : kept.counts;
  }

  isFresh(key: string): boolean {
    const kept = this.#kept.get(key);
    return kept !== undefined && !isOlder(kept, FRESH_MS);
  }

  /** Counts, and resolves when done. Concurrent calls for a key share one count. */
  count(key: string, counts: () => Promise<Counts>): Promise<void> {
    const running = this.#underWay.get(key);
    if (running) return running;
    const counting = this.#count(key, counts)
      // The log is then read without counts, and the next read tries again.
      .catch(() => void this.#kept.delete(key))
      .finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, counting);
    return counting;
  }

  async #count(key: string, counts: () => Promise<Counts>): Promise<void> {
    const startedAtMs = performance.now();
    const counted = await counts();
    const countedAtMs = performance.now();
    this.#kept.set(key, { counts: counted, countedAtMs, tookMs: countedAtMs - startedAtMs });
  }
}

function isOlder({ countedAtMs, tookMs }: { countedAtMs: number; tookMs: number }, ageMs: number): boolean {
  return performance.now() - countedAtMs > Math.max(ageMs, (ageMs / FRESH_MS) * (tookMs / SHARE));
}
