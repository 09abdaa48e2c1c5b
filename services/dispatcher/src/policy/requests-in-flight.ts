import { Semaphore } from '@runhook/runtime';
import { eventsMax } from './events-in-flight.ts';

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
 * A short wait is cheaper than a deferred row, which is written, read and updated.
 */

/** An event has many deliveries, or an endpoint is far away. */
const PERMITS_PER_JOB = 4;
const WAITING_SHARE = 1 / 4;

interface Share {
  /** First attempts in flight or waiting. */
  count: number;
  readonly waiters: Set<() => void>;
}

export class RequestsInFlight {
  readonly #permits: Semaphore;
  readonly #waitingMax: number;
  readonly #shares = new Map<string, Share>();

  /** @param concurrency jobs that each worker may have in flight */
  constructor(concurrency: number) {
    this.#waitingMax = eventsMax(concurrency) * WAITING_SHARE;
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

  /** Whether a first attempt of the subscription that has no slot may wait for one. */
  mayWait(subscriptionId: string): boolean {
    return (this.#shares.get(subscriptionId)?.count ?? 0) <= this.#waitingMax;
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
}
