import { Semaphore } from '@runhook/runtime';

/*
 * Requests in flight of this process, one of the four admission controls on the path of an event
 * (docs/architecture.md#admission-controls): first attempts over all events, and those of each subscription.
 *
 * | State of a first attempt | Entered when | Left when |
 * |---|---|---|
 * | waiting for permits | the process has as many first attempts as `DELIVERY_CONCURRENCY` allows | its event has permits for all its deliveries |
 * | waiting for a slot | its subscription has no slot, one is expected within 500 ms, and no more than a quarter of the events in flight are its own | a slot is released, or 500 ms are over |
 * | in flight | the limiter of its subscription (subscription-limiter.ts) gave it a slot | its request has ended |
 * | deferred | it may not wait, or has waited in vain | the job of its lane attempts it |
 *
 * A short wait is cheaper than a deferred row, which is written, read and updated. A subscription whose endpoint takes its time has
 * at most half of the events in flight, so that it does not delay those of others.
 */

/** An event has many deliveries, or an endpoint is far away. */
const PERMITS_PER_JOB = 4;
const EVENTS = 128;
const SHARE_MAX = EVENTS / 2;
/** An endpoint that responds at once may have more: its events are soon committed. */
const SOON_MS = 50;
const WAITING_SHARE_MAX = EVENTS / 4;

interface Share {
  /** First attempts in flight or waiting. */
  count: number;
  readonly waiters: Set<() => void>;
}

export class RequestsInFlight {
  readonly #permits: Semaphore;
  readonly #shares = new Map<string, Share>();

  /** @param concurrency jobs that each worker may have in flight */
  constructor(concurrency: number) {
    this.#permits = new Semaphore(concurrency * PERMITS_PER_JOB);
  }

  /** Waits for permits for the first attempts of an event. Each must be released. */
  async acquire(count: number): Promise<void> {
    if (count > 0) await this.#permits.acquire(count);
  }

  release(count = 1): void {
    this.#permits.release(count);
  }

  /** Adds a first attempt to the share of its subscription. It must leave. */
  enter(subscriptionId: string): void {
    const share = this.#shares.get(subscriptionId) ?? { count: 0, waiters: new Set() };
    this.#shares.set(subscriptionId, share);
    share.count += 1;
  }

  leave(subscriptionId: string): void {
    const share = this.#shares.get(subscriptionId);
    if (!share) return;
    share.count -= 1;
    if (share.count === 0) this.#shares.delete(subscriptionId);
  }

  waitingFor(subscriptionId: string): number {
    return this.#shares.get(subscriptionId)?.waiters.size ?? 0;
  }

  /** @param expectedMs until a slot is expected to be released */
  mayBegin(subscriptionId: string, expectedMs: number): boolean {
    return expectedMs <= SOON_MS || this.#count(subscriptionId) <= SHARE_MAX;
  }

  mayWait(subscriptionId: string): boolean {
    return this.#count(subscriptionId) <= WAITING_SHARE_MAX;
  }

  /** Resolves once a slot of the subscription is released, in order of arrival, or after a time. Must follow `enter`. */
  slotReleased(subscriptionId: string, withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const waiters = this.#shares.get(subscriptionId)?.waiters;
      const wake = () => {
        clearTimeout(timer);
        waiters?.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, withinMs);
      waiters?.add(wake);
    });
  }

  /** Must be called when the limiter of the subscription has taken a slot back. */
  noteRelease(subscriptionId: string): void {
    const [wake] = this.#shares.get(subscriptionId)?.waiters ?? [];
    wake?.();
  }

  #count(subscriptionId: string): number {
    return this.#shares.get(subscriptionId)?.count ?? 0;
  }
}
