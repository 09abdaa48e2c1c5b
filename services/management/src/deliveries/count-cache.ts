import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';

/** Memory of the counts, by `approximateBytes`. */
const BYTES_MAX = 32 * 1_024 * 1_024;
const FRESH_MS = 60_000;
const USABLE_MS = 10 * 60_000;
/** Maximum share of the time that counting may take: counts are fresh for at least 100 times its duration. */
const COUNTING_SHARE_MAX = 0.01;
/** Maximum number of concurrent counts of a cache, so that they leave the connections of their pool to requests. */
const PENDING_MAX = 1;

interface CacheEntry<Counts> {
  counts: Counts;
  countedAtMs: number;
  durationMs: number;
}

/**
 * Caches counts of long logs in memory for minutes, or for longer if counting takes long, and refreshes them in the
 * background.
 */
export class CountCache<Counts extends object> {
  readonly #entries: LRUCache<string, CacheEntry<Counts>>;
  readonly #pendingCounts = new Map<string, Promise<void>>();

  constructor(bytesMax = BYTES_MAX) {
    this.#entries = new LRUCache<string, CacheEntry<Counts>>({
      maxSize: bytesMax,
      sizeCalculation: approximateBytes,
    });
  }

  /** Returns null if there are no counts or they are too old. */
  get(key: string): Counts | null {
    const entry = this.#entries.get(key);
    return entry === undefined || isOlder(entry, USABLE_MS) ? null : entry.counts;
  }

  isFresh(key: string): boolean {
    const entry = this.#entries.get(key);
    return entry !== undefined && !isOlder(entry, FRESH_MS);
  }

  /**
   * Counts, and resolves when done or failed, at once if another key is being counted: then a later read counts again.
   * Concurrent calls for a key share one count.
   */
  count(key: string, readCounts: () => Promise<Counts>): Promise<void> {
    const running = this.#pendingCounts.get(key);
    if (running) return running;
    if (this.#pendingCounts.size >= PENDING_MAX) return Promise.resolve();
    const pendingCount = this.#count(key, readCounts)
      // After a failed count the log is read without counts, and a later read counts again.
      .catch(() => void this.#entries.delete(key))
      .finally(() => this.#pendingCounts.delete(key));
    this.#pendingCounts.set(key, pendingCount);
    return pendingCount;
  }

  async #count(key: string, readCounts: () => Promise<Counts>): Promise<void> {
    const startedAtMs = performance.now();
    const counted = await readCounts();
    const countedAtMs = performance.now();
    this.#entries.set(key, { counts: counted, countedAtMs, durationMs: countedAtMs - startedAtMs });
  }
}

function isOlder(
  { countedAtMs, durationMs }: { countedAtMs: number; durationMs: number },
  ageMs: number,
): boolean {
  return (
    performance.now() - countedAtMs > Math.max(ageMs, (ageMs / FRESH_MS) * (durationMs / COUNTING_SHARE_MAX))
  );
}
