import { type SubscriptionStatus, statusTogether } from './attempts.ts';

export interface StatusCoalescerOptions {
  write: (statuses: SubscriptionStatus[]) => Promise<void>;
  periodMs: number;
  onError: (error: unknown) => void;
}

/**
 * Keeps the status and the health of subscriptions current with one write per subscription and period, however many
 * deliveries it had.
 */
export class StatusCoalescer {
  readonly #options: StatusCoalescerOptions;
  readonly #timer: NodeJS.Timeout;
  #latest = new Map<string, SubscriptionStatus>();
  #writing = Promise.resolve();

  constructor(options: StatusCoalescerOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#writing = this.#writing.then(() => this.#flush());
    }, options.periodMs);
    this.#timer.unref();
  }

  note(status: SubscriptionStatus): void {
    const known = this.#latest.get(status.subscriptionId);
    this.#latest.set(status.subscriptionId, known ? statusTogether(known, status) : status);
  }

  /** Writes what is left and ends the timer. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#latest.size === 0) return;
    const statuses = [...this.#latest.values()];
    this.#latest = new Map();
    try {
      await this.#options.write(statuses);
    } catch (error) {
      // Kept for the next period, together with what has come meanwhile.
      for (const status of statuses) {
        const newer = this.#latest.get(status.subscriptionId);
        this.#latest.set(status.subscriptionId, newer ? statusTogether(status, newer) : status);
      }
      this.#options.onError(error);
    }
  }
}
