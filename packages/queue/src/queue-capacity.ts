import type { Queue } from 'bullmq';
import { QueueFullError } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';

/** Share of the server's memory above which a queue accepts no more events. */
const HIGH_WATER = 0.85;
const CHECK_EVERY_MS = 1_000;

/** Checks the memory of each queue server at most once a second; shards of a cluster may be on several servers. */
export class QueueCapacity {
  readonly #backend: QueueBackend;
  readonly #checks = new WeakMap<object, { usedShare: number; atMs: number }>();

  constructor(backend: QueueBackend) {
    this.#backend = backend;
  }

  /** Throws `QueueFullError` when little memory is left. */
  async require<Data>(queue: Queue<Data>): Promise<void> {
    const nowMs = performance.now();
    const server = this.#backend.isSpread ? queue : this.#backend;
    const check = this.#checks.get(server) ?? { usedShare: 0, atMs: Number.NEGATIVE_INFINITY };
    if (nowMs - check.atMs >= CHECK_EVERY_MS) {
      check.atMs = nowMs;
      this.#checks.set(server, check);
      check.usedShare = await this.#backend.usedShare(queue);
    }
    if (check.usedShare <= HIGH_WATER) return;
    const percent = Math.floor(check.usedShare * 100);
    throw new QueueFullError(`The queue is full: its server uses ${percent} % of its memory.`);
  }
}
