import type { Queue } from 'bullmq';
import { QueueFullError } from './backends/backend.ts';
import type { QueueBackend } from './backends/index.ts';

/** Share of its memory above which a queue accepts no more events. */
const HIGH_WATER = 0.85;
const LOOK_EVERY_MS = 1_000;

/** Checks the memory of each queue server once a second; the shards of a cluster may be on several servers. */
export class Room {
  readonly #backend: QueueBackend;
  readonly #looks = new WeakMap<object, { usedShare: number; atMs: number }>();

  constructor(backend: QueueBackend) {
    this.#backend = backend;
  }

  /** Throws `QueueFullError` when little memory is left. */
  async require<Data>(queue: Queue<Data>): Promise<void> {
    const nowMs = performance.now();
    const server = this.#backend.isSpread ? queue : this.#backend;
    const look = this.#looks.get(server) ?? { usedShare: 0, atMs: Number.NEGATIVE_INFINITY };
    if (nowMs - look.atMs >= LOOK_EVERY_MS) {
      look.atMs = nowMs;
      this.#looks.set(server, look);
      look.usedShare = await this.#backend.usedShare(queue);
    }
    if (look.usedShare <= HIGH_WATER) return;
    const percent = Math.floor(look.usedShare * 100);
    throw new QueueFullError(`The queue takes no more: its server uses ${percent} % of its memory.`);
  }
}
