import type { Client, Schemas } from '@runhook/client';

export type Delivery = Schemas['AccountDelivery'];

export const DELIVERIES_PATH = '/api/v3/accounts/{account_id}/webhooks/deliveries';

/**
 * A transaction with an earlier timestamp may commit later, so each poll starts this far before the newest delivery.
 */
const OVERLAP_MICROS = 60_000_000n;
/** Finds new deliveries of a webhook. Those that exist at the first poll do not count as new. */
export class LogTail {
  readonly #client: Client;
  readonly webhookId: string;
  /** Creation times of known deliveries by id, limited to those that a poll can still return. */
  readonly #seenDeliveries = new Map<string, bigint>();
  #newest = 0n;

  constructor(client: Client, webhookId: string) {
    this.#client = client;
    this.webhookId = webhookId;
  }

  /** Returns the new deliveries, oldest first. */
  async readNew(): Promise<Delivery[]> {
    const isFirst = this.#newest === 0n;
    const newDeliveries = isFirst
      ? await this.#start()
      : await this.#readSince(this.#newest - OVERLAP_MICROS);
    for (const [id, createdAt] of this.#seenDeliveries)
      if (createdAt < this.#newest - 2n * OVERLAP_MICROS) this.#seenDeliveries.delete(id);
    return newDeliveries;
  }

  async #start(): Promise<Delivery[]> {
    const query = { subscription_id: this.webhookId, limit: 1 };
    const { data: rows } = await this.#client.page(DELIVERIES_PATH, { query });
    const [newest] = rows;
    // The log is empty, so every later delivery is new.
    if (newest === undefined) {
      this.#newest = 1n;
      return [];
    }
    this.#newest = BigInt(newest.created_at);
    await this.#readSince(this.#newest - OVERLAP_MICROS);
    return [];
  }

  async #readSince(micros: bigint): Promise<Delivery[]> {
    const query = { subscription_id: this.webhookId, since: String(micros < 0n ? 0n : micros), limit: 100 };
    const newDeliveries: Delivery[] = [];
    for await (const delivery of this.#client.list(DELIVERIES_PATH, { query })) {
      if (this.#seenDeliveries.has(delivery.id)) continue;
      const createdAt = BigInt(delivery.created_at);
      this.#seenDeliveries.set(delivery.id, createdAt);
      if (createdAt > this.#newest) this.#newest = createdAt;
      newDeliveries.push(delivery);
    }
    return oldestFirst(newDeliveries);
  }
}

export function oldestFirst(deliveries: Delivery[]): Delivery[] {
  return deliveries.sort((a, b) => Number(BigInt(a.created_at) - BigInt(b.created_at)));
}

/** Wakes a waiting loop; a notification while it is not waiting is not lost. */
export class WakeSignal {
  readonly #closing = new AbortController();
  #isNotified = false;
  #wake: () => void = () => undefined;

  constructor(stopping: AbortSignal) {
    if (stopping.aborted) this.close();
    else stopping.addEventListener('abort', () => this.close(), { once: true });
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  notify(): void {
    this.#isNotified = true;
    this.#wake();
  }

  close(): void {
    this.#closing.abort();
    this.#wake();
  }

  /** Resolves at the next notification or after `timeoutMs`; with false once this signal is closed. */
  async wait(timeoutMs: number): Promise<boolean> {
    if (!this.#isNotified && !this.closed.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#isNotified = false;
    return !this.closed.aborted;
  }
}
