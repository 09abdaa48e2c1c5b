import type { SubscriptionStatus } from './data/update-subscription-statuses.ts';

/**
 * Keeps `dispatched_at` and `http_status_code` of subscriptions current with one write per subscription and period,
 * however many deliveries it had.
 */
export interface StatusCoalescer {
  note(status: SubscriptionStatus): void;
  /** Writes what is left and ends the timer. */
  close(): Promise<void>;
}

export function createStatusCoalescer(options: {
  write: (statuses: SubscriptionStatus[]) => Promise<void>;
  periodMs: number;
  onError: (error: unknown) => void;
}): StatusCoalescer {
  let latest = new Map<string, SubscriptionStatus>();
  let writing = Promise.resolve();

  function note(status: SubscriptionStatus): void {
    const known = latest.get(status.subscriptionId);
    if (!known || known.dispatchedAt <= status.dispatchedAt) latest.set(status.subscriptionId, status);
  }

  async function flush(): Promise<void> {
    if (latest.size === 0) return;
    const statuses = [...latest.values()];
    latest = new Map();
    try {
      await options.write(statuses);
    } catch (error) {
      // Kept for the next period, unless something newer has come.
      for (const status of statuses)
        if (!latest.has(status.subscriptionId)) latest.set(status.subscriptionId, status);
      options.onError(error);
    }
  }

  const timer = setInterval(() => {
    writing = writing.then(flush);
  }, options.periodMs);
  timer.unref();

  return {
    note,
    async close() {
      clearInterval(timer);
      await writing;
      await flush();
    },
  };
}
