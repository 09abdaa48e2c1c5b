import { approximateBytes } from '@runhook/runtime';
import { LRUCache } from 'lru-cache';

/** Memory of the counts, by `approximateBytes`. */
const BYTES_MAX = 32 * 1_024 * 1_024;
const FRESH_MS = 60_000;
const USABLE_MS = 10 * 60_000;
/** Counting again takes at most this share of the time. */
const SHARE = 0.01;

interface Kept<Counts> {
  counts: Counts;
  countedAtMs: number;
  tookMs: number;
}

/**
 * What was counted of something long, kept in memory for minutes, or for as much longer as counting takes, and counted in
 * the background.
 */
export class KeptCounts<Counts extends object> {
  readonly #kept: LRUCache<string, Kept<Counts>>;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(bytesMax = BYTES_MAX) {
    this.#kept = new LRUCache<string, Kept<Counts>>({ maxSize: bytesMax, sizeCalculation: approximateBytes });
  }

  /** Null when nothing is known, or nothing that is still good. */
  usable(key: string): Counts | null {
    const kept = this.#kept.get(key);
    return kept === undefined || isOlder(kept, USABLE_MS) ? null : kept.counts;
  }

  isFresh(key: string): boolean {
    const kept = this.#kept.get(key);
    return kept !== undefined && !isOlder(kept, FRESH_MS);
  }

  /** Resolves when it was counted. Once at a time; whoever comes meanwhile waits for the same. */
  count(key: string, counts: () => Promise<Counts>): Promise<void> {
    const running = this.#underWay.get(key);
    if (running) return running;
    const counting = this.#count(key, counts)
      // It is read as short ones are, then, and whoever looks next brings another try.
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
