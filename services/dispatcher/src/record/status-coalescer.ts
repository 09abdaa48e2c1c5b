import { isItemFault } from '@runhook/database';
import { callHalving } from '@runhook/runtime';
import { mergeStatuses, type SubscriptionStatus } from './attempts.ts';

export interface StatusCoalescerOptions {
  write: (statuses: SubscriptionStatus[]) => Promise<void>;
  periodMs: number;
  onError: (error: unknown) => void;
  /** Called with a status that the record rejects for its data, which is then dropped. */
  onRejected: (status: SubscriptionStatus, error: unknown) => Promise<void>;
}

/** Minimum time for which statuses are gathered before a write. */
const GATHER_MS = 20;

/**
 * Writes the status and health of each subscription at most once in a period, however many deliveries it had; after a
 * quiet period 20 ms later.
 */
export class StatusCoalescer {
  readonly #options: StatusCoalescerOptions;
  #timer: NodeJS.Timeout | null = null;
  #flushedAtMs = Number.NEGATIVE_INFINITY;
  #pendingStatuses = new Map<string, SubscriptionStatus>();
  #writing = Promise.resolve();
  #isClosed = false;

  constructor(options: StatusCoalescerOptions) {
    this.#options = options;
  }

  note(status: SubscriptionStatus): void {
    const pending = this.#pendingStatuses.get(status.subscriptionId);
    this.#pendingStatuses.set(status.subscriptionId, pending ? mergeStatuses(pending, status) : status);
    this.#flushSoon();
  }

  /** Writes the remaining statuses. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearTimeout(this.#timer);
    await this.#writing;
    await this.#flush();
  }

  #flushSoon(): void {
    if (this.#timer || this.#isClosed) return;
    const dueMs = this.#flushedAtMs + this.#options.periodMs - performance.now();
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#flushedAtMs = performance.now();
        this.#writing = this.#writing.then(() => this.#flush());
      },
      Math.max(GATHER_MS, dueMs),
    );
    this.#timer.unref();
  }

  async #flush(): Promise<void> {
    if (this.#pendingStatuses.size === 0) return;
    const unwritten = this.#pendingStatuses;
    this.#pendingStatuses = new Map();
    const write = async (part: readonly SubscriptionStatus[]) => {
      await this.#options.write([...part]);
      for (const { subscriptionId } of part) unwritten.delete(subscriptionId);
    };
    try {
      for (const { item, error } of await callHalving([...unwritten.values()], write, isItemFault)) {
        unwritten.delete(item.subscriptionId);
        await this.#options.onRejected(item, error);
      }
    } catch (error) {
      // Retained for the next period, merged with newer statuses.
      for (const status of unwritten.values()) {
        const newer = this.#pendingStatuses.get(status.subscriptionId);
        this.#pendingStatuses.set(status.subscriptionId, newer ? mergeStatuses(status, newer) : status);
      }
      this.#flushSoon();
      this.#options.onError(error);
    }
  }
}
