import type { Client, Schemas } from '@runhook/client';

export type Delivery = Schemas['AccountDelivery'];

export const LOG = '/api/v3/accounts/{account_id}/webhooks/deliveries';

/**
 * A transaction with an earlier timestamp may commit later, so each poll starts this far before the newest delivery.
 */
const OVERLAP_MICROS = 60_000_000n;
/** Finds new deliveries of a webhook. Those that exist at the first poll do not count as new. */
export class Log {
  readonly #client: Client;
  readonly webhookId: string;
  /** Creation times of known deliveries by id, limited to those that a poll can still return. */
  readonly #known = new Map<string, bigint>();
  #newest = 0n;

  constructor(client: Client, webhookId: string) {
    this.#client = client;
    this.webhookId = webhookId;
  }

  /** Returns the new deliveries, oldest first. */
  async news(): Promise<Delivery[]> {
    const isFirst = this.#newest === 0n;
    const news = isFirst ? await this.#begin() : await this.#since(this.#newest - OVERLAP_MICROS);
    for (const [id, createdAt] of this.#known)
      if (createdAt < this.#newest - 2n * OVERLAP_MICROS) this.#known.delete(id);
    return news;
  }

  async #begin(): Promise<Delivery[]> {
    const query = { subscription_id: this.webhookId, limit: 1 };
    const { data: rows } = await this.#client.page(LOG, { query });
    const [newest] = rows;
    // The log is empty, so every later delivery is new.
    if (newest === undefined) {
      this.#newest = 1n;
      return [];
    }
    this.#newest = BigInt(newest.created_at);
    await this.#since(this.#newest - OVERLAP_MICROS);
    return [];
  }

  async #since(micros: bigint): Promise<Delivery[]> {
    const query = { subscription_id: this.webhookId, since: String(micros < 0n ? 0n : micros), limit: 100 };
    const news: Delivery[] = [];
    for await (const delivery of this.#client.list(LOG, { query })) {
      if (this.#known.has(delivery.id)) continue;
      const createdAt = BigInt(delivery.created_at);
      this.#known.set(delivery.id, createdAt);
      if (createdAt > this.#newest) this.#newest = createdAt;
      news.push(delivery);
    }
    return oldestFirst(news);
  }
}

export function oldestFirst(deliveries: Delivery[]): Delivery[] {
  return deliveries.sort((a, b) => Number(BigInt(a.created_at) - BigInt(b.created_at)));
}

/** Wakes a waiting loop; a ring while it is not waiting is not lost. */
export class Bell {
  readonly #closing = new AbortController();
  #isRung = false;
  #wake: () => void = () => undefined;

  constructor(stopping: AbortSignal) {
    if (stopping.aborted) this.close();
    else stopping.addEventListener('abort', () => this.close(), { once: true });
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  close(): void {
    this.#closing.abort();
    this.#wake();
  }

  /** Resolves at the next ring or after `atMostMs`; with false once the bell is closed. */
  async rung(atMostMs: number): Promise<boolean> {
    if (!this.#isRung && !this.closed.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, atMostMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#isRung = false;
    return !this.closed.aborted;
  }
}
