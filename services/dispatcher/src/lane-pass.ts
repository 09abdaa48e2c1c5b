import { setTimeout as wait } from 'node:timers/promises';
import { isPermanentRejection } from '@runhook/database';
import { waitAtMost } from '@runhook/runtime';
import { deliveryKeyOf, logAndSchedule } from './attempt.ts';
import type { Dispatcher } from './dispatcher.ts';
import { reasonNotToSend } from './format.ts';
import type { LaneRate } from './lane-rate.ts';
import { type Delivery, tracksJobs, undeliverableReason } from './policy/next-step.ts';
import { attemptQueued, type QueuedResult } from './queued-attempt.ts';
import type { LaneKey } from './record/deferred.ts';
import type { Cancellation, DeliveryKey } from './record/deliveries.ts';
import { releaseSuccessors, selectReady } from './run-order.ts';
import type { Target } from './target.ts';

/** Time after which the job of a lane ends, so that others can run, and is queued again. It waits for its attempts. */
const PASS_MS = 10_000;
/** Interval at which the job of a lane checks for deliveries, slots and permits while its attempts are in flight. */
export const POLL_EVERY_MS = 100;
/** Maximum time for which the job of a lane without attempts in flight waits for tokens of its rate limit. */
const TOKEN_WAIT_MAX_MS = 200;
/** Maximum number of deferred deliveries of a lane that are cancelled at once, without loading their data. */
const CANCEL_PAGE = 500;

/** One run of the job of a lane: takes deliveries and attempts them (docs/architecture.md#lanes). */
export class LanePass {
  /** Whether slots are free, but the account has no permits, or the server of the lane no capacity for its attempts. */
  isFull = false;
  readonly #dispatcher: Dispatcher;
  readonly #lane: LaneKey;
  readonly #rate: LaneRate;
  readonly #inFlight = new Set<Promise<void>>();
  /** Latest delivery of each job, for a target that tracks jobs. */
  readonly #latestOfJobs = new Map<string, Promise<void>>();
  readonly #untilMs = performance.now() + PASS_MS;
  /** Attempts that were in flight when the time of the pass was over. */
  #lastAttempts: readonly Promise<void>[] | null = null;
  #fault: { error: unknown } | null = null;

  constructor(dispatcher: Dispatcher, lane: LaneKey, rate: LaneRate) {
    this.#dispatcher = dispatcher;
    this.#lane = lane;
    this.#rate = rate;
  }

  /**
   * Returns how many deliveries the pass may take now, if its rate limit permits it; 0 until enough slots are free to be
   * worth a statement.
   */
  capacity(): number {
    const { limits, requests } = this.#dispatcher;
    const slots = limits.freeSlots(this.#lane.subscriptionId);
    if (slots < this.#inFlight.size / 4) return 0;
    const permits = requests.permits.queued.free(this.#lane.accountId);
    this.isFull ||= permits <= 0;
    return this.isFull ? 0 : Math.min(slots, permits);
  }

  /**
   * Whether the time of the pass is over and the attempts that were then in flight have ended. The pass waits for them
   * anyway, and an attempt that hangs must not leave the lane idle. With the attempts that it starts meanwhile, it takes
   * at most PASS_MS and two deadlines.
   */
  isOver(): boolean {
    if (performance.now() < this.#untilMs) return false;
    this.#lastAttempts ??= [...this.#inFlight];
    return !this.#lastAttempts.some((attempt) => this.#inFlight.has(attempt));
  }

  isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /**
   * Attempts one delivery of a blocked lane. If retries are on, never makes a last attempt, so that no delivery fails
   * because its endpoint asked for a pause. Returns false if there is no such delivery.
   */
  async probe(): Promise<boolean> {
    // The next probe finds the bucket full.
    if ((await this.#rate.grant(1)) === 0) return true;
    const attemptsBelow = Math.max(1, this.#dispatcher.retryPolicy.retriesMax);
    for (;;) {
      const { taken, begun } = await this.claim(1, attemptsBelow);
      await this.waitForAll();
      this.throwFault();
      if (begun > 0 || taken === 0 || this.isOver()) return begun > 0;
    }
  }

  /**
   * Takes deferred deliveries, and attempts them or cancels them with further ones. Those of an ordered subscription
   * whose turn it is not are not begun.
   */
  async claim(limit: number, attemptsBelow?: number): Promise<{ taken: number; begun: number }> {
    const { record, requests, attemptMs } = this.#dispatcher;
    const permitsMax = requests.permits.queued.free(this.#lane.accountId);
    const claimed = await record.claimDeferred({
      ...this.#lane,
      limit,
      permitsMax,
      attemptMs,
      attemptsBelow,
    });
    const [first] = claimed;
    const reason = first === undefined ? null : undeliverableReason(first.target);
    if (first !== undefined && reason !== null) {
      this.#cancelAll(claimed.map(deliveryKeyOf), reason);
      await this.#cancelDeferred(deliveryKeyOf(first));
      for (const delivery of claimed) await releaseSuccessors(this.#dispatcher, delivery);
      return { taken: claimed.length, begun: claimed.length };
    }
    const ready = first?.target?.ordered ? await selectReady(this.#dispatcher, this.#lane, claimed) : claimed;
    if (first?.target) await this.#requireTokens(first.target, ready.length);
    for (const delivery of ready)
      this.#track(deliveryKeyOf(delivery), this.#deliverAfterEarlier(delivery, attemptsBelow !== undefined));
    return { taken: claimed.length, begun: ready.length };
  }

  /** Draws missing tokens of deliveries that are sent now: the limit is new, or the claim took longer than tokens are valid. */
  async #requireTokens({ rateLimit }: Target, count: number): Promise<void> {
    this.#rate.update(rateLimit);
    await this.#rate.grant(count, count);
  }

  #track(key: DeliveryKey, work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => {
        if (isPermanentRejection(error)) return this.#dispatcher.quarantine.setAsideDelivery(key, error);
        throw error;
      })
      .catch((error: unknown) => {
        this.#fault ??= { error };
      })
      .finally(() => this.#inFlight.delete(tracked));
    this.#inFlight.add(tracked);
  }

  /** Waits until an attempt (all, if `isFull`) ends, at most POLL_EVERY_MS: other lanes may release permits first. */
  async waitForAny(): Promise<void> {
    // Retries of the lane, which are other jobs, may have the slots while one attempt of this pass hangs.
    const timeoutMs = Math.min(POLL_EVERY_MS, this.#rate.waitMs() || POLL_EVERY_MS);
    if (!this.isFull) return await waitAtMost(timeoutMs, Promise.race(this.#inFlight));
    await this.waitForAll(POLL_EVERY_MS);
    this.isFull = this.isIdle();
  }

  /** Waits for the next draw if it is due soon, which is more exact than a delay of the job. */
  async waitForTokens(): Promise<boolean> {
    const waitMs = this.#rate.waitMs();
    if (waitMs === 0 || waitMs > TOKEN_WAIT_MAX_MS) return false;
    const { stopping } = this.#dispatcher;
    await wait(waitMs, undefined, { signal: stopping }).catch(() => undefined);
    return true;
  }

  async waitForAll(timeoutMs?: number): Promise<void> {
    const ended = Promise.all(this.#inFlight);
    if (timeoutMs === undefined) await ended;
    else if (!this.isIdle()) await waitAtMost(timeoutMs, ended);
  }

  throwFault(): void {
    if (this.#fault) throw this.#fault.error;
  }

  /** Cancels further deliveries of the lane, without loading their data. `claimed` is one of the same subscription. */
  async #cancelDeferred(claimed: DeliveryKey): Promise<void> {
    const { record } = this.#dispatcher;
    const keys = await record.loadDeferredKeys({ ...this.#lane, limit: CANCEL_PAGE });
    // Reads the subscription after the keys, because deliveries that are deferred after its activation must be sent. A
    // single statement would not do: in a distributed log, its nodes have no common snapshot.
    const delivery = keys.length === 0 ? null : await record.loadDelivery(claimed);
    const reason = delivery && undeliverableReason(delivery.target);
    if (reason !== null) this.#cancelAll(keys, reason);
  }

  #cancelAll(keys: readonly DeliveryKey[], reason: string): void {
    for (const key of keys) this.#track(key, this.#cancel({ ...key, reason }));
  }

  async #cancel(cancellation: Cancellation): Promise<void> {
    await this.#dispatcher.record.cancelDelivery(cancellation);
    this.#dispatcher.metrics.completed.cancelled.inc();
  }

  /** Makes the attempts of one job one after another if the target tracks jobs. */
  #deliverAfterEarlier(delivery: Delivery, isProbe: boolean): Promise<void> {
    if (!tracksJobs(delivery.target?.format ?? null)) return this.#deliver(delivery, isProbe);
    const { jobId } = delivery.event.data;
    // A turn that comes after the time of the pass is left to the next one, which bounds the duration of a pass.
    const deliver = () =>
      performance.now() < this.#untilMs
        ? this.#deliver(delivery, isProbe)
        : this.#dispatcher.record.defer(deliveryKeyOf(delivery));
    const ended = (this.#latestOfJobs.get(jobId) ?? Promise.resolve()).then(deliver, deliver);
    this.#latestOfJobs.set(jobId, ended);
    return ended;
  }

  async #deliver(delivery: Delivery, isProbe: boolean): Promise<void> {
    const { record, limits } = this.#dispatcher;
    // A delivery without a target is cancelled.
    const target = delivery.target as Target;
    const result = await this.#attempt(delivery, target, isProbe).catch(async (error: unknown) => {
      // An internal error before anything was sent, such as an unreadable secret: the delivery waits in its lane.
      if (!isPermanentRejection(error)) await record.defer(deliveryKeyOf(delivery));
      throw error;
    });
    if (result === 'cancelled') return await releaseSuccessors(this.#dispatcher, delivery);
    if (result === 'no_token') return await record.defer(deliveryKeyOf(delivery));
    if (result === null) {
      // Without a free slot, the limit of the lane has fallen since the claim.
      this.isFull = limits.freeSlots(delivery.subscriptionId) > 0;
      return await record.defer(deliveryKeyOf(delivery));
    }
    await logAndSchedule(this.#dispatcher, delivery, result);
    if (result.outcome.kind !== 'retry') await releaseSuccessors(this.#dispatcher, delivery);
  }

  /** Attempts a delivery, or cancels one that its format does not send. */
  async #attempt(delivery: Delivery, target: Target, isProbe: boolean): Promise<QueuedResult | 'cancelled'> {
    const reason = target.format === null ? null : await reasonNotToSend(this.#dispatcher, delivery, target);
    const options = { rate: this.#rate, ignoresBlock: isProbe };
    if (reason === null) return await attemptQueued(this.#dispatcher, delivery, target, options);
    await this.#cancel({ ...deliveryKeyOf(delivery), reason });
    return 'cancelled';
  }
}
